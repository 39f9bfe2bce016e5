package state

type tables struct{ applied uint64 }

func newTables() *tables                      { return &tables{} }
func (t *tables) clone() *tables              { c := *t; return &c }
func (t *tables) dispatch(cmd Command) Result { return Result{} }
