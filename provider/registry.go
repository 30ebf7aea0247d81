package provider

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Registry holds the live provider instances of a process by id. The zero
// value is empty and ready; all methods are safe for concurrent use.
type Registry struct {
	mu   sync.RWMutex
	byID map[string]Provider
}

// Add makes p reachable under id. It returns an error if id is empty or taken.
func (r *Registry) Add(id string, p Provider) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id == "" {
		return fmt.Errorf("add provider: empty id")
	}
	if _, taken := r.byID[id]; taken {
		return fmt.Errorf("add provider %s: the id is taken", id)
	}
	if r.byID == nil {
		r.byID = make(map[string]Provider)
	}
	r.byID[id] = p
	return nil
}

// Get returns the instance called id.
func (r *Registry) Get(id string) (Provider, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p, ok := r.byID[id]
	return p, ok
}

// IDs lists the ids in order.
func (r *Registry) IDs() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.byID))
}
