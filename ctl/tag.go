package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"strake/client"
)

func (a *app) tagCommand() *cobra.Command {
	return group("tag", "publish what a volume is under a name that never changes",
		a.tagCreate(), a.tagList(), a.tagHold("hold", false), a.tagHold("release", true), a.tagVerify())
}

func (a *app) tagCreate() *cobra.Command {
	return &cobra.Command{
		Use: "create VOLUME@NAME...", Short: "tag one or several volumes as they are", Args: someArgs,
		Long: `Make tags: snapshots with a digest of their content, which is computed in the background
from checksums, without reading data. Readers open a tag by its name or by its digest. A tag that
is held can't be removed.`,
		Example: "  strake tag create imagenet@v3\n  strake tag hold imagenet@v3 --by training",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSnapshots(cmd.Context(), "create tag", args, func(ctx context.Context, cell *client.Cell) error {
				list, err := cell.CreateTags(ctx, args...)
				if err != nil {
					return err
				}
				return a.print(map[string]any{"tags": orEmpty(list)}, func(w io.Writer) {
					for _, s := range list {
						fmt.Fprintf(w, "created %s; its digest is being computed\n", s.Name)
					}
				})
			})
		},
	}
}

func (a *app) tagList() *cobra.Command {
	return &cobra.Command{
		Use: "ls VOLUME", Short: "list a volume's tags, the oldest first", Args: exactArgs(1),
		Example: "  strake tag ls imagenet",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withVolume(cmd.Context(), "list tags", args[0], func(ctx context.Context, cell *client.Cell) error {
				return a.listSnapshots(ctx, cell, args[0], 0, 0, true)
			})
		},
	}
}

func (a *app) tagHold(verb string, release bool) *cobra.Command {
	by := "admin"
	short := "keep a tag from being removed"
	if release {
		short = "give a hold of a tag up"
	}
	c := &cobra.Command{
		Use: verb + " VOLUME@NAME", Short: short, Args: exactArgs(1),
		Example: "  strake tag " + verb + " imagenet@v3 --by training",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSnapshots(cmd.Context(), verb+" tag", args, func(ctx context.Context, cell *client.Cell) error {
				f := cell.HoldTag
				if release {
					f = cell.ReleaseTag
				}
				s, err := f(ctx, args[0], by)
				if err != nil {
					return err
				}
				return a.print(s, func(w io.Writer) { fmt.Fprintf(w, "%s is held by %d\n", s.Name, len(s.Holds)) })
			})
		},
	}
	c.Flags().StringVar(&by, "by", by, "in whose name, e.g. a job's")
	return c
}

func (a *app) tagVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify VOLUME@NAME", Short: "read all of a tag and compare it with its digest", Args: exactArgs(1),
		Long: `Read every byte of a tag, or of a snapshot, compare the content with the tag's digest,
and tell the SHA-256 of all its bytes.`,
		Example: "  strake tag verify imagenet@v3",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSnapshots(cmd.Context(), "verify tag", args, func(ctx context.Context, cell *client.Cell) error {
				s, err := cell.Snapshot(ctx, args[0])
				if err != nil {
					return err
				}
				bar := a.newProgress("verifying", s.Size)
				r, err := cell.VerifyTag(ctx, args[0], bar.add)
				bar.end()
				if err != nil {
					return err
				}
				return a.print(r, func(w io.Writer) {
					if r.Ready {
						fmt.Fprintf(w, "%s is sound\n\n", r.Name)
					} else {
						fmt.Fprintf(w, "%s was read whole; it has no digest yet that its content could be compared with\n\n", r.Name)
					}
					pairs(w, [][2]string{{"digest:", r.Digest}, {"SHA-256 of its bytes:", r.SHA256}})
				})
			})
		},
	}
}
