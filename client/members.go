package client

import (
	"context"

	"strake/proto/pb"
)

// AddMember adds a metadata server, which must run with --join and be empty. It
// takes part in votes once it has caught up.
func (c *Cell) AddMember(ctx context.Context, address string) error {
	_, err := call(ctx, c, "add metadata server "+address, func(ctx context.Context, m pb.MetaClient) (*pb.AddMemberReply, error) {
		return m.AddMember(ctx, &pb.AddMemberRequest{Address: address})
	})
	return err
}

// RemoveMember removes a metadata server from the cell.
func (c *Cell) RemoveMember(ctx context.Context, address string) error {
	_, err := call(ctx, c, "remove metadata server "+address, func(ctx context.Context, m pb.MetaClient) (*pb.RemoveMemberReply, error) {
		return m.RemoveMember(ctx, &pb.RemoveMemberRequest{Address: address})
	})
	return err
}
