package read

// Spans are the parts of the caller's buffer that Decode fills.
func (g *Group) Spans() []Span {
	spans := make([]Span, len(g.group.runs))
	for i, r := range g.group.runs {
		spans[i] = Span{r.into, r.length}
	}
	return spans
}
