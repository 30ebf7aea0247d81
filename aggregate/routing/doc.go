// Package routing answers, before a run starts, which provider instance and
// which models it uses (docs/routing.md). It never answers with another account
// than the one that was asked for: what cannot be resolved is an error.
//
// Everything here is a pure function of its arguments: one snapshot of the
// configuration, the session's settings, and what is live. Nothing is read from
// the machine, and equal arguments give equal answers.
//
// How it is used:
//
//  1. Config.Check judges a configuration once, when it is read.
//  2. When a runner claims a run, Config.Plan resolves the session's provider,
//     the roster of roles, the reasoning effort and the gold configuration. The
//     caller records them in run.started: they do not change during the run.
//  3. An *Error of code provider_unavailable ends the run by run.refused; one of
//     code provider_not_held leaves it for another runner to claim.
//
// The parts of a Plan can be had one by one: EffectiveRef, Resolve,
// ProviderType, Roster, Reasoning and ResolveGold.
package routing
