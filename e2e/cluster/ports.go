package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken from below the range that the kernel hands out to outgoing
// connections, so that none of them is lost while its server is down.
const (
	firstPort = 16000
	lastPort  = 30000
	portTries = 2000
)

// freePorts gives n ports that are free on loopback now.
func freePorts(n int) ([]int, error) {
	var ports []int
	taken := map[int]bool{}
	for range portTries {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		if taken[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l.Close()
		taken[port] = true
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("%d of %d ports found", len(ports), n)
}
