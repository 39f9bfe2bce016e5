// Command generate makes the Go code of the protobuf files in proto/pb with Go
// alone: it compiles them with protocompile and hands the result to the
// protoc-gen-go plugins that go.mod pins. With -check it changes nothing and
// fails when a committed file is stale.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/pluginpb"
)

var files = []string{"common.proto", "meta.proto", "chunk.proto"}

func main() {
	check := flag.Bool("check", false, "fail when a committed file is stale, change nothing")
	dir := flag.String("dir", "proto/pb", "folder of the .proto files")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	request, err := compile(dir)
	if err != nil {
		return err
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		response, err := generate(plugin, request)
		if err != nil {
			return err
		}
		for _, f := range response.File {
			if err := write(filepath.Join(dir, f.GetName()), []byte(f.GetContent()), check); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile parses the .proto files into what a protoc plugin reads.
func compile(dir string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{dir}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(context.Background(), files...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: files,
		Parameter:      proto.String("paths=source_relative"),
	}
	for _, f := range compiled {
		request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(f))
	}
	return request, nil
}

func generate(plugin string, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plugin, err)
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out, response); err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, fmt.Errorf("%s: %s", plugin, response.GetError())
	}
	return response, nil
}

func write(path string, content []byte, check bool) error {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, content) {
		return nil
	}
	if check {
		return fmt.Errorf("%s is stale: run `make generate` and commit the result", path)
	}
	return os.WriteFile(path, content, 0o644)
}
