package erasure

import (
	"sync"

	"strake/internal/layout"
)

// Set keeps one coder per geometry. The zero value is empty and ready. Safe for
// concurrent use.
type Set struct {
	mu     sync.RWMutex
	coders map[layout.Geometry]*Coder // guarded by mu; bounded by the 64 geometries
}

// For gives the coder of a geometry, made on first use. Error: InvalidArgument.
func (s *Set) For(g layout.Geometry) (*Coder, error) {
	s.mu.RLock()
	c := s.coders[g]
	s.mu.RUnlock()
	if c != nil {
		return c, nil
	}
	c, err := For(g)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.coders[g]; known != nil {
		return known, nil
	}
	if s.coders == nil {
		s.coders = map[layout.Geometry]*Coder{}
	}
	s.coders[g] = c
	return c, nil
}
