package server

import (
	"context"
	"net"

	"strake/internal/errs"
	"strake/proto/pb"
)

// AddMember implements pb.MetaServer.
func (s *Server) AddMember(ctx context.Context, r *pb.AddMemberRequest) (*pb.AddMemberReply, error) {
	if err := checkAddress(r.GetAddress()); err != nil {
		return nil, err
	}
	if err := s.joinable(ctx, r.GetAddress()); err != nil {
		return nil, err
	}
	return &pb.AddMemberReply{}, s.replica.AddMember(ctx, r.GetAddress())
}

// RemoveMember implements pb.MetaServer.
func (s *Server) RemoveMember(ctx context.Context, r *pb.RemoveMemberRequest) (*pb.RemoveMemberReply, error) {
	if err := checkAddress(r.GetAddress()); err != nil {
		return nil, err
	}
	return &pb.RemoveMemberReply{}, s.replica.RemoveMember(ctx, r.GetAddress())
}

func checkAddress(addr string) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return errs.New(errs.InvalidArgument, "", "%q is no HOST:PORT", addr)
	}
	return nil
}
