package client

import (
	"context"
	"fmt"

	"strake/proto/pb"
)

// CellStatus is the cell's state in one look.
type CellStatus struct {
	Cell             string         `json:"cell"`
	Health           string         `json:"health"` // healthy, degraded, at-risk
	Members          []MemberStatus `json:"metadata_servers"`
	ServersUp        uint32         `json:"servers_up"`
	ServersDown      uint32         `json:"servers_down"`
	Volumes          uint64         `json:"volumes"`
	Segments         uint64         `json:"segments"`
	SegmentsDegraded uint64         `json:"segments_degraded"`
	SegmentsAtRisk   uint64         `json:"segments_at_risk"`
	SegmentsLost     uint64         `json:"segments_lost"`
	TotalBytes       uint64         `json:"total_bytes"`
	UsedBytes        uint64         `json:"used_bytes"`
	ReservedBytes    uint64         `json:"reserved_bytes"`
	OtherBytes       uint64         `json:"other_bytes"` // logs, indexes, others' files
	Problems         []string       `json:"problems"`
}

// MemberStatus is one metadata server.
type MemberStatus struct {
	Address   string `json:"address"`
	Leader    bool   `json:"leader"`
	Voter     bool   `json:"voter"`
	Reachable bool   `json:"reachable"`
	Lag       uint64 `json:"lag_entries"`
}

// ServerInfo is one chunk server.
type ServerInfo struct {
	ID       uint64       `json:"id"`
	Address  string       `json:"address"`
	Control  string       `json:"control_address"`
	Domain   string       `json:"domain"`
	State    string       `json:"state"`
	SilentMs uint64       `json:"silent_ms"`
	Version  string       `json:"version,omitempty"`
	Devices  []DeviceInfo `json:"devices"`
}

// DeviceInfo is one device of a chunk server; figures in bytes.
type DeviceInfo struct {
	ID            uint64 `json:"id"`
	UUID          string `json:"uuid"`
	Path          string `json:"path"`
	State         string `json:"state"`
	TotalBytes    uint64 `json:"total_bytes"`
	UsedBytes     uint64 `json:"used_bytes"`
	ReservedBytes uint64 `json:"reserved_bytes"`
	OtherBytes    uint64 `json:"other_bytes"` // logs, index, others' files
	Incarnation   uint64 `json:"incarnation"`
	Note          string `json:"note,omitempty"` // what is odd about it: a copy of it that still runs, why it limps
	// Capacity is what it was measured to do; nil: it was not.
	Capacity *DeviceCapacity `json:"capacity,omitempty"`
}

// Status describes the cell.
func (c *Cell) Status(ctx context.Context) (CellStatus, error) {
	r, err := call(ctx, c, "ask for the cell's status", func(ctx context.Context, m pb.MetaClient) (*pb.StatusReply, error) {
		return m.Status(ctx, &pb.StatusRequest{})
	})
	if err != nil {
		return CellStatus{}, err
	}
	s := CellStatus{
		Cell: fmt.Sprintf("%016x", r.Cell), Health: "healthy", ServersUp: r.ServersUp, ServersDown: r.ServersDown,
		Volumes: r.Volumes, Segments: r.Segments, SegmentsDegraded: r.SegmentsDegraded, SegmentsAtRisk: r.SegmentsAtRisk,
		SegmentsLost: r.SegmentsLost, TotalBytes: r.TotalBytes, UsedBytes: r.UsedBytes, ReservedBytes: r.ReservedBytes, OtherBytes: r.OtherBytes,
		Problems: append([]string{}, r.Problems...),
	}
	for _, m := range r.Members {
		s.Members = append(s.Members, MemberStatus{m.Address, m.Leader, m.Voter, m.Reachable, m.Lag})
	}
	if len(s.Problems) > 0 || s.ServersDown > 0 || s.SegmentsDegraded > 0 {
		s.Health = "degraded"
	}
	if s.SegmentsAtRisk > 0 || s.SegmentsLost > 0 {
		s.Health = "at-risk"
	}
	return s, nil
}

// Servers lists the chunk servers in id order.
func (c *Cell) Servers(ctx context.Context) ([]ServerInfo, error) {
	r, err := call(ctx, c, "list servers", func(ctx context.Context, m pb.MetaClient) (*pb.ListServersReply, error) {
		return m.ListServers(ctx, &pb.ListServersRequest{})
	})
	if err != nil {
		return nil, err
	}
	var list []ServerInfo
	for _, s := range r.Servers {
		info := ServerInfo{ID: s.Id, Address: s.DataAddress, Control: s.ControlAddress, Domain: s.Domain,
			State: s.State, SilentMs: s.SilentMs, Version: s.Version}
		for _, d := range s.Devices {
			info.Devices = append(info.Devices, DeviceInfo{d.Id, uuidText(d.Uuid), d.Path, d.State,
				d.TotalBytes, d.UsedBytes, d.ReservedBytes, d.OtherBytes, d.Incarnation, d.Note, capacityFromPB(d.Capacity)})
		}
		list = append(list, info)
	}
	return list, nil
}

func uuidText(b []byte) string {
	if len(b) != 16 {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
