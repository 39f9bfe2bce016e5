package client

import "strake/client/internal/extent"

// The versions of the map pages and of the map roots that this library writes.
const (
	MapPageVersion = extent.PageVersion
	MapRootVersion = extent.RootVersion
)
