// Package show tells a person what happened, in words.
//
// A [Printer] turns events into one line each; [Clean] and [CleanBlock] make
// text from outside safe to print; [Age] and [Count] spell times and numbers.
// Whatever a model, a tool or a client put into an event is hostile here: no
// control character, escape sequence or text direction mark of it reaches the
// terminal.
//
// The sentences are for people and may change; programs read the events.
package show
