package aggregate

import (
	"container/list"
	"sync"
	"time"
)

// actor owns one session's state: its jobs run one after the other, on a
// goroutine that lives while there are any.
type actor struct {
	session string

	mu      sync.Mutex
	queue   []job
	running bool

	// What follows belongs to the running job.
	state *State // nil until loaded
	// ticket of the newest sync that the state rests on.
	ticket uint64
	// broken is a finding about the log itself, which no reload may hide.
	broken error

	element *list.Element // place in the cache's order while idle, under the cache's lock
}

// push queues a job; start says that the caller must start run.
func (a *actor) push(j job) (start, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) >= maxQueued {
		return false, false
	}
	a.queue = append(a.queue, j)
	start = !a.running
	a.running = true
	return start, true
}

// run works the queue off and calls idle when it is empty.
func (a *actor) run(patience time.Duration, idle func(*actor)) {
	for {
		a.mu.Lock()
		if len(a.queue) == 0 {
			a.running = false
			a.mu.Unlock()
			idle(a)
			return
		}
		jobs := a.queue
		a.queue = nil
		a.mu.Unlock()
		for _, j := range jobs {
			j.do(a, patience)
		}
	}
}

// forget drops the state: the next job folds the log anew.
func (a *actor) forget() { a.state, a.ticket = nil, 0 }

// cache holds the actors, least recently used first out; busy ones stay.
type cache struct {
	mu    *sync.Mutex
	all   map[string]*actor
	order *list.List // of idle *actor, most recently used in front
	limit int
}

func newCache(limit int) cache {
	return cache{mu: &sync.Mutex{}, all: map[string]*actor{}, order: list.New(), limit: limit}
}

// push queues a job for the session, whose actor then cannot be evicted until
// it is idle; start and ok are those of actor.push.
func (c *cache) push(session string, j job) (a *actor, start, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a = c.all[session]
	if a == nil {
		a = &actor{session: session}
		c.all[session] = a
	}
	if a.element != nil {
		c.order.Remove(a.element)
		a.element = nil
	}
	start, ok = a.push(j)
	return a, start, ok
}

// idle makes the actor evictable, unless new jobs came meanwhile.
func (c *cache) idle(a *actor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.mu.Lock()
	running := a.running // then its state is not ours to look at
	empty := !running && a.state == nil && a.broken == nil
	a.mu.Unlock()
	// Another goroutine may have made it idle, and let it go, since this one
	// found its queue empty: then the name may belong to a newer actor.
	if running || a.element != nil || c.all[a.session] != a {
		return
	}
	if empty {
		delete(c.all, a.session)
		return
	}
	a.element = c.order.PushFront(a)
	for c.order.Len() > c.limit {
		oldest, _ := c.order.Remove(c.order.Back()).(*actor)
		oldest.element = nil
		delete(c.all, oldest.session)
	}
}

// names lists the sessions that are in memory.
func (c *cache) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]string, 0, len(c.all))
	for name := range c.all {
		out = append(out, name)
	}
	return out
}
