package server

import (
	"context"
	"slices"
	"time"

	"strake/internal/errs"
	"strake/internal/layout"
	"strake/internal/qos"
	"strake/meta/reconcile"
	"strake/meta/state"
	"strake/proto/pb"
)

// ListClasses implements pb.MetaServer.
func (s *Server) ListClasses(ctx context.Context, _ *pb.ListClassesRequest) (*pb.ListClassesReply, error) {
	view, err := s.fresh(ctx)
	if err != nil {
		return nil, err
	}
	return &pb.ListClassesReply{Classes: classesOut(view), Version: view.QoSChanged()}, nil
}

// SetClass implements pb.MetaServer.
func (s *Server) SetClass(ctx context.Context, r *pb.SetClassRequest) (*pb.SetClassReply, error) {
	record, err := classRecordIn(r.GetClass())
	if err != nil {
		return nil, err
	}
	if err := record.Class().Params.CheckLimit(); err != nil {
		return nil, errs.Wrap(err, "set class %s", record.Name)
	}
	cmd := state.SetClass{ID: state.CommandID(r.GetCommand()), Class: record, Add: r.GetAdd(), Seen: r.GetClass().GetChanged()}
	if !record.Reserved().IsZero() {
		if err := s.keepForClass(ctx, &cmd); err != nil {
			return nil, err
		}
	}
	if err := s.do(ctx, cmd); err != nil {
		return nil, err
	}
	now, err := s.machine.View().ClassByName(record.Name)
	if err != nil {
		return nil, err
	}
	return &pb.SetClassReply{Class: classOut(now)}, nil
}

// RemoveClass implements pb.MetaServer.
func (s *Server) RemoveClass(ctx context.Context, r *pb.RemoveClassRequest) (*pb.RemoveClassReply, error) {
	return &pb.RemoveClassReply{}, s.do(ctx, state.RemoveClass{ID: state.CommandID(r.GetCommand()), Name: r.GetName()})
}

func classRecordIn(c *pb.QosClass) (state.ClassRecord, error) {
	number, err := classIn(c.GetNumber())
	if err != nil {
		return state.ClassRecord{}, err
	}
	return state.ClassRecord{Number: number, Name: c.GetName(), ReservedBytes: c.GetReservation().GetBytes(), ReservedOps: c.GetReservation().GetOps(),
		LimitBytes: c.GetLimit().GetBytes(), LimitOps: c.GetLimit().GetOps(), Weight: c.GetWeight(), TargetNs: c.GetTargetNs(),
		SLONs: c.GetSloNs(), SLOBytes: c.GetSloBytes()}, nil
}

func classOut(r state.ClassRecord) *pb.QosClass {
	return &pb.QosClass{Number: uint32(r.Number), Name: r.Name, Reservation: &pb.Rate{Bytes: r.ReservedBytes, Ops: r.ReservedOps},
		Limit: &pb.Rate{Bytes: r.LimitBytes, Ops: r.LimitOps}, Weight: r.Weight, TargetNs: r.TargetNs, SloNs: r.SLONs, SloBytes: r.SLOBytes,
		Changed: r.Changed, Builtin: qos.IsBuiltin(r.Number)}
}

func classesOut(view *state.View) (list []*pb.QosClass) {
	for _, r := range view.Classes() {
		list = append(list, classOut(r))
	}
	return list
}

// qosHeartbeat takes in what a server's devices do, and tells it what classes there
// are, when that changed, and its devices' parts.
func (s *Server) qosHeartbeat(view *state.View, srv *state.Server, r *pb.HeartbeatRequest, reply *pb.HeartbeatReply) {
	s.qos.heard(srv.Devices, r)
	danger := s.endangered()
	if reply.QosVersion = saidVersion(view.QoSChanged(), danger); reply.QosVersion != r.GetQosVersion() {
		reply.Classes = classesSaid(view, danger)
	}
	if own := s.dividable(view, srv.ID); !s.qos.knows(own) {
		s.divideShares(view) // a server that is told of no parts would take it for no reservation and no limit
	}
	reply.Shares = s.qos.of(srv.Devices)
}

// dangerWeight is how many times its weight the class background has while data is
// in danger: as much as training's, unless people changed that.
const dangerWeight = 10

// endangered tells whether a segment is to be made whole faster than others.
func (s *Server) endangered() (yes bool) {
	s.control.with(func(p *reconcile.Planner, _ time.Duration) {
		met, _ := p.Progress()
		yes = met.Urgent > 0
	})
	return yes
}

// saidVersion names what chunk servers are told of classes; 0: as built in.
func saidVersion(changed uint64, danger bool) uint64 {
	if danger {
		return changed<<1 | 1
	}
	return changed << 1
}

// classesSaid gives the classes as schedulers are to have them: rebuilds get more of
// busy devices while data is in danger.
func classesSaid(view *state.View, danger bool) []*pb.QosClass {
	list := classesOut(view)
	for _, c := range list {
		if danger && c.Number == uint32(layout.ClassBackground) {
			c.Weight = min(dangerWeight*max(1, c.Weight), qos.MaxWeight)
		}
	}
	return list
}

// dividable gives the devices of servers that are up, or of one of them, which take
// part in the division of cell-wide figures.
func (s *Server) dividable(view *state.View, only serverID) (list []layout.DeviceID) {
	for _, d := range view.Devices() {
		if d.State != state.DeviceDead && d.State != state.DeviceDown && (only == 0 || d.Server == only) && s.alive.up(d.Server) {
			list = append(list, d.ID)
		}
	}
	return list
}

// divideShares divides cell-wide figures among devices by demand.
func (s *Server) divideShares(view *state.View) {
	s.qos.divide(claims(view), s.dividable(view, 0))
}

// tickQoS divides cell-wide figures and ends reservations whose time is over.
func (s *Server) tickQoS(ctx context.Context) {
	view := s.machine.View()
	s.divideShares(view)
	for _, r := range view.Reservations() {
		if s.qos.left(r) > 0 {
			continue
		}
		err := s.do(ctx, state.EndReservation{Job: r.Job, Renewed: r.Renewed})
		if kind := errs.KindOf(err); err != nil && kind != errs.NotFound && kind != errs.Conflict && ctx.Err() == nil {
			s.log.Warn("reservation not ended", "job", r.Job, "err", err)
		}
	}
}

// claimant is whose work a claim is for: a class's, or with a tenant that tenant's in it.
type claimant struct {
	class  layout.Class
	tenant layout.TenantID // 0: of the class as a whole
}

// claim is what a claimant has in the whole cell.
type claim struct {
	claimant
	part
}

// claims gives what classes have for themselves, and what jobs reserved for their
// tenants.
func claims(view *state.View) (list []claim) {
	for _, record := range view.Classes() {
		p := record.Class().Params
		list = append(list, claim{claimant{record.Number, 0}, part{p.Reservation, p.Limit}})
	}
	for _, r := range view.Reservations() {
		who := claimant{r.Class, layout.TenantOf(r.Tenant)}
		i := slices.IndexFunc(list, func(c claim) bool { return c.claimant == who })
		if i < 0 {
			i, list = len(list), append(list, claim{claimant: who})
		}
		list[i].reservation = list[i].reservation.Plus(r.Rate())
	}
	return list
}
