package e2e

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"strake/e2e/cluster"
)

// harms are the faults, each with how often it comes among the sum of all.
var harms = []struct {
	often int
	do    func(*torture)
}{
	{18, (*torture).kill},
	{10, (*torture).cutPower},
	{4, (*torture).cutPowerOfAll},
	{8, (*torture).restart},
	{14, (*torture).standStill},
	{6, (*torture).fillDisk},
	{4, (*torture).readOnlyDisk},
	{4, (*torture).hangDisk},
	{6, (*torture).killLeader},
	{6, (*torture).pauseMeta},
	{6, (*torture).pauseWriter},
	{8, func(x *torture) {
		x.damage("corrupt a shard file", func(path string) error { return corrupt(path, x.r) })
	}},
	{6, func(x *torture) { x.damage("delete a shard file", os.Remove) }},
}

// fault does one harm. One that lasts goes on under those that don't, until the
// next that lasts.
func (x *torture) fault() {
	x.t.Helper()
	sum := 0
	for _, h := range harms {
		sum += h.often
	}
	n := x.r.IntN(sum)
	for _, h := range harms {
		if n -= h.often; n < 0 {
			h.do(x)
			break
		}
	}
	x.progress(5)
}

// victim is a chunk server that harm may come to for a while.
func (x *torture) victim() *cluster.Process { return x.c.Chunkds[x.r.IntN(damagedServer)] }

// onDisk is one with a disk that may ail.
func (x *torture) onDisk() *cluster.Process { return x.c.Chunkds[x.r.IntN(tortureOnDisks)] }

func (x *torture) kill() {
	x.heal()
	v := x.victim()
	x.note("SIGKILL", v)
	check(x.t, v.Kill())
	x.later(func() error { return v.Restart() }, x.upTo(4*time.Second))
}

// cut ends a process and cuts the power of its disk.
func (x *torture) cut(p *cluster.Process) {
	check(x.t, p.Kill())
	if d := x.disks[p.Name]; d != nil {
		d.Cut(x.r, [...]int{0, 10, 50, 100}[x.r.IntN(4)])
	}
}

func (x *torture) cutPower() {
	x.heal()
	v := x.onDisk()
	x.note("power cut", v)
	x.cut(v)
	x.later(func() error { return v.Restart() }, x.upTo(4*time.Second))
}

// cutPowerOfAll ends every server at once; those without a disk of ours keep their
// page cache. The writer lives on.
func (x *torture) cutPowerOfAll() {
	x.heal()
	all := x.c.Servers()
	x.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	x.note("power cut of all", all[0])
	for _, p := range all {
		x.cut(p)
	}
	for _, p := range all {
		check(x.t, p.Restart())
	}
	x.later(func() error { return nil }, 0) // all are up before the next that lasts
}

func (x *torture) restart() {
	x.heal()
	v := x.victim()
	x.note("restart", v)
	check(x.t, errors.Join(v.Stop(), v.Restart()))
	x.later(func() error { return nil }, 0) // it is up before the next that lasts
}

func (x *torture) standStill() {
	x.heal()
	v := x.victim()
	x.note("SIGSTOP", v)
	check(x.t, v.Pause())
	x.later(v.Resume, x.pause())
}

func (x *torture) fillDisk() {
	x.heal()
	v := x.onDisk()
	x.note("disk full", v)
	d := x.disks[v.Name]
	d.Fill(x.r.Int64N(8 << 20))
	x.later(func() error { d.Heal(); return nil }, x.upTo(6*time.Second))
}

// readOnlyDisk ends what the server makes of its disk; it has to be restarted.
func (x *torture) readOnlyDisk() {
	x.heal()
	v := x.onDisk()
	x.note("disk read-only", v)
	x.disks[v.Name].ReadOnly()
	x.later(func() error {
		x.cut(v)
		return v.Restart()
	}, x.upTo(4*time.Second))
}

func (x *torture) hangDisk() {
	x.heal()
	v := x.onDisk()
	x.note("disk hangs", v)
	d := x.disks[v.Name]
	d.Hang()
	x.later(func() error { d.Heal(); return nil }, x.upTo(6*time.Second))
}

// killLeader cuts the power of the metadata server that leads.
func (x *torture) killLeader() {
	leader, err := x.c.Leader(x.t.Context())
	check(x.t, err)
	x.note("power cut of the leader", leader)
	x.cut(leader)
	check(x.t, leader.Restart())
}

func (x *torture) pauseMeta() {
	m := x.c.Metas[x.r.IntN(len(x.c.Metas))]
	x.note("SIGSTOP meta", m)
	x.still(m, 3*time.Second)
}

func (x *torture) pauseWriter() {
	x.note("SIGSTOP writer", x.writer)
	x.still(x.writer, 5*time.Second)
}

// still stops a process for a while that nothing else happens in.
func (x *torture) still(p *cluster.Process, most time.Duration) {
	check(x.t, p.Pause())
	time.Sleep(x.upTo(most))
	check(x.t, p.Resume())
}

func (x *torture) upTo(most time.Duration) time.Duration {
	return time.Duration(x.r.Int64N(int64(most)))
}

// pause is how long a process stands still: half a lease, and in long runs twice and
// ten times as long too.
func (x *torture) pause() time.Duration {
	if *tortureMinutes == 0 {
		return lease / 2
	}
	return [...]time.Duration{lease / 2, lease / 2, lease / 2, 2 * lease, 10 * lease}[x.r.IntN(5)]
}

func (x *torture) later(restore func() error, after time.Duration) {
	x.restore, x.due = restore, time.Now().Add(after)
}

// damage does harm to one of the damaged server's shard files.
func (x *torture) damage(what string, harm func(path string) error) {
	files, err := filepath.Glob(filepath.Join(x.c.Dir(), x.c.Chunkds[damagedServer].Name, "shards", "*"))
	check(x.t, err)
	if len(files) == 0 {
		return
	}
	x.note(what, x.c.Chunkds[damagedServer])
	if err := harm(files[x.r.IntN(len(files))]); err != nil && !errors.Is(err, os.ErrNotExist) {
		x.t.Fatal(err)
	}
}

// corrupt flips bytes of a file.
func corrupt(path string, r *rand.Rand) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	for range 8 {
		var b [1]byte
		at := r.Int64N(info.Size())
		if _, err := f.ReadAt(b[:], at); err != nil {
			return err
		}
		b[0] ^= 0x5a
		if _, err := f.WriteAt(b[:], at); err != nil {
			return err
		}
	}
	return nil
}
