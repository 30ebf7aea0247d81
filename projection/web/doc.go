// Package web serves the views, the logs and the page over HTTP.
//
// It knows neither NATS nor SQL: what it needs are the small interfaces of
// ports.go, which the processes wire. It keeps no state besides a ring of the
// latest events for those who follow.
//
//	request ─▶ guard (Host, Origin, limits, headers) ─▶ token ─▶ one handler ─▶ port
//
// The duties of a caller:
//
//  1. [New] with what there is: without a Querier there is no page and no API,
//     only health and metrics.
//  2. [Server.Serve] on a listener until its context ends.
//  3. Say where the page is with [PageURL]. With the token the URL is a secret,
//     which goes to the person who asks for it and to no log.
//
// Whatever a model, a tool or a client put into an event is hostile here. The
// API hands it out as JSON under nosniff; the page shows it as text and never
// as markup, which its content security policy enforces besides.
package web
