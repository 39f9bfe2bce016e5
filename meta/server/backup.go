package server

import (
	"google.golang.org/grpc"

	"strake/meta/backup"
	"strake/proto/pb"
)

// backupPart is how much of a backup goes in one message, in bytes.
const backupPart = 256 << 10

// Backup implements pb.MetaServer. The state is that of one moment, with everything
// in it that was acknowledged before the call.
func (s *Server) Backup(_ *pb.BackupRequest, to grpc.ServerStreamingServer[pb.BackupPart]) error {
	view, err := s.fresh(to.Context())
	if err != nil {
		return err
	}
	about := backup.About{Cell: uint64(view.Cell().ID), Applied: view.Applied(), AtUnix: nowUnix()}
	for _, m := range s.replica.Members() {
		about.Members = append(about.Members, m.Address)
	}
	w, err := backup.NewWriter(&parts{to: to}, about)
	if err != nil {
		return err
	}
	if _, err := view.Snapshot().WriteTo(w); err != nil {
		return err
	}
	return w.Close()
}

// parts sends what is written, in parts.
type parts struct {
	to grpc.ServerStreamingServer[pb.BackupPart]
}

// Write implements io.Writer.
func (p *parts) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		part := b[n:min(len(b), n+backupPart)]
		if err = p.to.Send(&pb.BackupPart{Data: part}); err == nil {
			n += len(part)
		}
	}
	return n, err
}

// interceptStream is intercept for calls that stream.
func (s *Server) interceptStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := s.leading()
	if err == nil {
		err = handle(srv, &pb.CheckedStream{ServerStream: stream, Method: info.FullMethod})
	}
	if err != nil {
		return pb.ToStatus(err)
	}
	return nil
}
