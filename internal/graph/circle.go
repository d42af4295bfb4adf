package graph

// InCircle reports whether one comes back to an entry from another one by replaces and skips.
func (g *Channel) InCircle(entry string) bool { return g.circles()[entry] }

// findCircles returns the entries that are in a strongly connected component with others: R. E. Tarjan, Depth-first search
// and linear graph algorithms, SIAM Journal on Computing 1 (1972), without recursion, since chains are long.
func (g *Channel) findCircles() map[string]bool {
	type frame struct {
		n    *node
		next int // of its edges
	}
	found := map[string]bool{}
	number, low, open := make(map[*node]int, len(g.list)), make(map[*node]int, len(g.list)), map[*node]bool{}
	var path []*node
	for _, start := range g.list {
		if number[start] > 0 {
			continue
		}
		enter := func(n *node) frame {
			number[n] = len(number) + 1
			low[n], open[n] = number[n], true
			path = append(path, n)
			return frame{n: n}
		}
		for stack := []frame{enter(start)}; len(stack) > 0; {
			f := &stack[len(stack)-1]
			if f.next <= len(f.n.Skips) {
				to := g.target(f.n, f.next)
				f.next++
				switch {
				case to == nil:
				case number[to] == 0:
					stack = append(stack, enter(to))
				case open[to]:
					low[f.n] = min(low[f.n], number[to])
				}
				continue
			}
			n := f.n
			if stack = stack[:len(stack)-1]; len(stack) > 0 {
				above := stack[len(stack)-1].n
				low[above] = min(low[above], low[n])
			}
			if low[n] != number[n] {
				continue
			}
			at := len(path) - 1
			for path[at] != n {
				at--
			}
			for _, one := range path[at:] {
				delete(open, one)
				if len(path)-at > 1 {
					found[one.Name] = true
				}
			}
			path = path[:at]
		}
	}
	return found
}

// target is the node at the end of n's i-th edge: those of skips come first, and that of replaces last. It is nil if the channel has
// no such entry.
func (g *Channel) target(n *node, i int) *node {
	name := n.Replaces
	if i < len(n.Skips) {
		name = n.Skips[i]
	}
	if name == "" {
		return nil
	}
	return g.byName[name]
}
