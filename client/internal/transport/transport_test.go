package transport_test

import (
	"net"
	"testing"

	"go.uber.org/goleak"

	"strake/client/internal/transport"
	"strake/client/internal/transport/transporttest"
	"strake/internal/tls"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := tls.Policy{}.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func startTCP(t testing.TB, h transport.Handler, window int) (transport.Transport, string) {
	s := transporttest.Serve(listen(t), h)
	t.Cleanup(s.Close)
	return transport.NewTCP(tls.Policy{}, transport.Settings{Window: window}), s.Addr()
}

func startMem(t testing.TB, h transport.Handler, window int) (transport.Transport, string) {
	m := transport.NewMem(transport.MemOptions{Window: window})
	m.Serve("server", h)
	return m, "server"
}

func TestTCP(t *testing.T) { transporttest.Run(t, startTCP) }

func TestMem(t *testing.T) { transporttest.Run(t, startMem) }

// TestStream runs the suite over a connection that is no socket, as TLS is not.
func TestStream(t *testing.T) {
	transporttest.Run(t, func(t testing.TB, h transport.Handler, window int) (transport.Transport, string) {
		s := transporttest.Serve(listen(t), h)
		t.Cleanup(s.Close)
		return transport.NewStreamTCP(tls.Policy{}, transport.Settings{Window: window}), s.Addr()
	})
}
