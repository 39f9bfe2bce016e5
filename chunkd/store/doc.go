// Package store is the store of one device of a chunk server.
package store
