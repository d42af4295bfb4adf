package walk

import "github.com/olmkit/olmkit/internal/graph"

// switchChannel has what is published and requested from now on be of the edge's channel, until what it returns is called.
func (w *walk) switchChannel(edge graph.Edge) (done func()) {
	w.channel, w.Place.Channel, w.was = edge.Channel, edge.Channel, edge.Switch
	return func() { w.channel, w.Place.Channel, w.was = edge.Channel, edge.Channel, "" }
}
