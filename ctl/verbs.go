package ctl

// verbs is the table of every verb of the command, in the words of its noun and
// verb. An issue that adds a verb registers it under its line here; a test
// compares the table with the command tree.
var verbs = []string{
	"dev", "meta serve", "meta add", "meta rm", "chunkd serve",
	"status", "health", "cell ls", "server ls", "server drain", "server undrain", "server rm", "server calibrate",
	"device replace", "rebuild status", "rebalance start", "rebalance status", "rebalance stop", "scrub start", "scrub status",
	"volume create", "volume ls", "volume show", "volume resize", "volume rm", "volume undelete",
	"volume import", "volume export", "volume clone", "volume flatten",
	"class ls", "class show", "class set", "class add", "class rm",
	"reserve create", "reserve ls", "reserve show", "reserve renew", "reserve rm",
	"top", "slo", "explain class",
	"bench", "bench report", "bench interference",
	"events", "explain volume", "volume recover", "meta backup", "meta restore",
	"snapshot create", "snapshot ls", "snapshot show", "snapshot rm", "snapshot rollback", "snapshot diff",
	"tag create", "tag ls", "tag hold", "tag release", "tag verify",
	"config show", "config check", "version", "completion",
}
