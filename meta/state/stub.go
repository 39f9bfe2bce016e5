package state

func (c FormCell) check() error                             { return nil }
func (c FormCell) apply(t *tables, r *Result) error         { return nil }
func (c RegisterServer) check() error                       { return nil }
func (c RegisterServer) apply(t *tables, r *Result) error   { return nil }
func (c UpdateDevices) check() error                        { return nil }
func (c UpdateDevices) apply(t *tables, r *Result) error    { return nil }
func (c SetServerState) check() error                       { return nil }
func (c SetServerState) apply(t *tables, r *Result) error   { return nil }
func (c OpenSession) check() error                          { return nil }
func (c OpenSession) apply(t *tables, r *Result) error      { return nil }
func (c CloseSession) check() error                         { return nil }
func (c CloseSession) apply(t *tables, r *Result) error     { return nil }
func (c ExpireSession) check() error                        { return nil }
func (c ExpireSession) apply(t *tables, r *Result) error    { return nil }
func (c CreateVolume) check() error                         { return nil }
func (c CreateVolume) apply(t *tables, r *Result) error     { return nil }
func (c ResizeVolume) check() error                         { return nil }
func (c ResizeVolume) apply(t *tables, r *Result) error     { return nil }
func (c RemoveVolume) check() error                         { return nil }
func (c RemoveVolume) apply(t *tables, r *Result) error     { return nil }
func (c UndeleteVolume) check() error                       { return nil }
func (c UndeleteVolume) apply(t *tables, r *Result) error   { return nil }
func (c PurgeVolume) check() error                          { return nil }
func (c PurgeVolume) apply(t *tables, r *Result) error      { return nil }
func (c AcquireLease) check() error                         { return nil }
func (c AcquireLease) apply(t *tables, r *Result) error     { return nil }
func (c ReleaseLease) check() error                         { return nil }
func (c ReleaseLease) apply(t *tables, r *Result) error     { return nil }
func (c AllocateSegments) check() error                     { return nil }
func (c AllocateSegments) apply(t *tables, r *Result) error { return nil }
func (c OpenSegments) check() error                         { return nil }
func (c OpenSegments) apply(t *tables, r *Result) error     { return nil }
func (c DropSegments) check() error                         { return nil }
func (c DropSegments) apply(t *tables, r *Result) error     { return nil }
func (c SealSegments) check() error                         { return nil }
func (c SealSegments) apply(t *tables, r *Result) error     { return nil }
func (c CloseEpoch) check() error                           { return nil }
func (c CloseEpoch) apply(t *tables, r *Result) error       { return nil }
func (c RecordRoot) check() error                           { return nil }
func (c RecordRoot) apply(t *tables, r *Result) error       { return nil }
func (c MarkFinalized) check() error                        { return nil }
func (c MarkFinalized) apply(t *tables, r *Result) error    { return nil }
func (c ReplaceShard) check() error                         { return nil }
func (c ReplaceShard) apply(t *tables, r *Result) error     { return nil }
func (c MarkDeleted) check() error                          { return nil }
func (c MarkDeleted) apply(t *tables, r *Result) error      { return nil }
