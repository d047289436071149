package jsonwalk

// small is the number of names up to which a look along the list is faster than a map, and above which a list would let a
// hostile object with 100,000 members cost their square.
const small = 16

// Names finds a name that an object has twice. The zero value is ready.
type Names struct {
	list [small]string
	n    int
	more map[string]struct{}
}

// Add notes a name and reports whether it is new.
func (s *Names) Add(name string) bool {
	if s.more == nil {
		for _, have := range s.list[:s.n] {
			if have == name {
				return false
			}
		}
		if s.n < small {
			s.list[s.n] = name
			s.n++
			return true
		}
		s.more = make(map[string]struct{}, 4*small)
		for _, have := range s.list {
			s.more[have] = struct{}{}
		}
	}
	if _, ok := s.more[name]; ok {
		return false
	}
	s.more[name] = struct{}{}
	return true
}
