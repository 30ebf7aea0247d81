package explore

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"
)

// Found is what a search comes to.
type Found struct {
	Worlds   int // distinct worlds
	Steps    int // moves tried
	States   int // distinct states of the session
	Depth    int // of the farthest world
	Complete bool
	// Wrong is the shortest story that breaks a rule, "" without one.
	Wrong string
}

func (f Found) String() string {
	whole := "complete"
	if !f.Complete {
		whole = "not complete"
	}
	return fmt.Sprintf("%d worlds, %d states of the session, %d steps, depth %d, %s", f.Worlds, f.States, f.Steps, f.Depth, whole)
}

// search is a breadth-first search. Worlds are found again by a hash of 64 bits.
type search struct {
	e       *engine
	replies []reply
	seed    maphash.Seed
	known   map[uint64]uint32
	worlds  []world
	from    []uint32
	back    [][2]uint32 // edges that count as a way out
	found   Found
}

// Explore visits every world within the bounds, at most limit of them.
func Explore(b Bounds, limit int) Found {
	s := &search{e: newEngine(30 * time.Minute), replies: []reply{{}}, seed: maphash.MakeSeed(), known: map[uint64]uint32{}}
	s.visit(s.first(b), 0)
	s.found.Complete = true
	depth, level := 0, 1
	for at := 0; at < len(s.worlds); at++ {
		if at == level {
			depth, level = depth+1, len(s.worlds)
		}
		if b.Depth > 0 && depth >= b.Depth || len(s.worlds) > limit {
			s.found.Complete = false
			break
		}
		if s.expand(uint32(at)) { //nolint:gosec // bounded by limit
			break
		}
	}
	s.found.Worlds, s.found.States, s.found.Depth = len(s.worlds), len(s.e.nodes), depth
	if s.found.Wrong == "" && s.found.Complete {
		s.orphans()
	}
	return s.found
}

// first is the world at the beginning. From the open calls on, runner 1 holds
// the run and has given every command so far.
func (s *search) first(b Bounds) world {
	w := world{Node: s.e.begin(b), Left: b.Times}
	if b.FromRequest {
		return w
	}
	m := moves{e: s.e, replies: &s.replies}
	for _, k := range []kind{claim, admit, answer} {
		if o, bad := m.give(&w, cmd{Kind: k, Run: 1}); bad != "" || !o.reply.OK {
			panic(fmt.Sprint(bad, o.reply))
		}
	}
	w.R[0].Run = 1
	return w
}

func (s *search) visit(w world, from uint32) uint32 {
	h := maphash.Comparable(s.seed, w)
	if i, ok := s.known[h]; ok {
		return i
	}
	i := uint32(len(s.worlds)) //nolint:gosec // bounded by limit
	s.known[h] = i
	s.worlds, s.from = append(s.worlds, w), append(s.from, from)
	return i
}

// expand goes to every neighbour; true if a rule is broken.
func (s *search) expand(at uint32) bool {
	m := moves{e: s.e, w: s.worlds[at], replies: &s.replies}
	m.all()
	s.found.Steps += len(m.out)
	for _, to := range m.out {
		if to.bad != "" {
			s.found.Wrong = s.story(at) + s.last(at, to.w) + "WRONG: " + to.bad + "\n"
			return true
		}
		i := s.visit(to.w, at)
		if !to.forced {
			s.back = append(s.back, [2]uint32{i, at})
		}
	}
	return false
}

// orphans looks for a world from which nobody can bring the session to rest.
func (s *search) orphans() {
	first := make([]uint32, len(s.worlds)+2)
	for _, e := range s.back {
		first[e[0]+2]++
	}
	for i := 2; i < len(first); i++ {
		first[i] += first[i-1]
	}
	into := make([]uint32, len(s.back))
	for _, e := range s.back {
		into[first[e[0]+1]] = e[1]
		first[e[0]+1]++
	}
	ok := make([]bool, len(s.worlds))
	var queue []uint32
	for i := range s.worlds {
		if s.e.nodes[s.worlds[i].Node].rests {
			ok[i], queue = true, append(queue, uint32(i)) //nolint:gosec // bounded by limit
		}
	}
	for len(queue) > 0 {
		i := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, from := range into[first[i]:first[i+1]] {
			if !ok[from] {
				ok[from], queue = true, append(queue, from)
			}
		}
	}
	for i := range ok {
		if !ok[i] {
			s.found.Wrong = s.story(uint32(i)) + "WRONG: nothing but a cancel or a close brings the session to rest from here\n" //nolint:gosec // bounded
			return
		}
	}
}

// story tells how the world came about.
func (s *search) story(at uint32) string {
	var lines []string
	for at != 0 {
		from := s.from[at]
		lines = append(lines, s.last(from, s.worlds[at]))
		at = from
	}
	var b strings.Builder
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString(lines[i])
	}
	return b.String()
}

// last is the line of the move from a world to the next.
func (s *search) last(from uint32, to world) string {
	m := moves{e: s.e, w: s.worlds[from], replies: &s.replies, spoken: true}
	m.all()
	for _, step := range m.out {
		if step.w == to {
			return step.text + "\n"
		}
	}
	return "?\n"
}
