// Package e2e holds the tests of whole cells: servers as processes of their own,
// killed, paused and restarted under load. What the tests check is design §4.
//
// Package cluster runs the processes, package workload writes blocks that tell on
// themselves and checks what is left of them; demo shows the main job.
package e2e
