package transport

import "strake/internal/layout"

// Peek gives the connection of an address and class if it works now; it never
// waits and never connects. For the hot path; Get is for the rest.
func (p *Pool) Peek(addr string, class layout.Class) (Conn, bool) {
	p.mu.Lock()
	l := p.lanes[laneKey{addr, class}]
	if l == nil || l.conn == nil || l.conn.Err() != nil {
		p.mu.Unlock()
		return nil, false
	}
	conn := l.conn
	p.mu.Unlock()
	touch(conn)
	return conn, true
}
