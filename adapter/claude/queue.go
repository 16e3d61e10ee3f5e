package claude

import (
	"context"
	"sync"
)

// held is how many bytes of events may wait for the caller's loop. Beyond it the reader waits too, so that a slow
// loop slows the CLI instead of filling memory.
const held = 64 << 20

// queue holds events between the goroutine that reads them and the loop that takes them.
type queue struct {
	mu     sync.Mutex
	room   sync.Cond
	events []Event
	size   int
	limit  int
	hurry  int   // somebody waits for a frame behind the events: do not block the reader
	err    error // set once, when no more will come

	ready chan struct{} // holds a token whenever there may be something to take
}

func newQueue() *queue {
	q := &queue{limit: held, ready: make(chan struct{}, 1)}
	q.room.L = &q.mu
	return q
}

// put adds an event. It waits while the queue is full, and drops the event when it is four times full and may not
// wait, which takes a loop that stands still and a CLI that floods.
func (q *queue) put(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.size > q.limit && q.hurry == 0 {
		q.room.Wait()
	}
	if q.size > 4*q.limit {
		return
	}
	q.events = append(q.events, e)
	q.size += len(e.Raw) + 512
	q.wake()
}

// take returns the next event. After the last one it returns the error that the queue was closed with.
func (q *queue) take(ctx context.Context) (Event, error) {
	for {
		if e, ok, err := q.pop(); ok || err != nil {
			return e, err
		}
		select {
		case <-q.ready:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

func (q *queue) pop() (Event, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		return Event{}, false, q.err
	}
	e := q.events[0]
	q.events[0] = Event{}
	q.events = q.events[1:]
	q.size -= len(e.Raw) + 512
	q.room.Broadcast()
	return e, true, nil
}

// close says that the reader is done.
func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
	q.wake()
}

// hurried keeps the reader from waiting for room until the function that it returns is called.
func (q *queue) hurried() (done func()) {
	q.add(1)
	return func() { q.add(-1) }
}

func (q *queue) add(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hurry += n
	q.room.Broadcast()
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}
