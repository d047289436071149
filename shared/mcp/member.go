package mcp

// eachMember visits the members of an object that the scan accepted, in the order in which they stand, with their names unescaped. Any other
// value has none.
func eachMember(raw []byte, visit func(name, value []byte)) {
	s := scanner{b: raw}
	if s.peek() != '{' || !s.open() || s.peek() == '}' {
		return
	}
	for {
		key, ok := s.key()
		if !ok {
			return
		}
		s.peek()
		start := s.i
		if !s.value() {
			return
		}
		visit(unquote(key), raw[start:s.i:s.i])
		if s.peek() != ',' {
			return
		}
		s.i++
	}
}

// eachElement visits the elements of an array that the scan accepted. Any other value has none.
func eachElement(raw []byte, visit func(value []byte)) {
	s := scanner{b: raw}
	if s.peek() != '[' || !s.open() || s.peek() == ']' {
		return
	}
	for {
		s.peek()
		start := s.i
		if !s.value() {
			return
		}
		visit(raw[start:s.i:s.i])
		if s.peek() != ',' {
			return
		}
		s.i++
	}
}

// member returns the value of this exact name, nil when there is none, and how often the name occurs. encoding/json would take another case
// for it, and the last of several.
func member(raw []byte, name string) (value []byte, times int) {
	eachMember(raw, func(n, v []byte) {
		if string(n) == name {
			value = v
			times++
		}
	})
	return value, times
}

// soleMember is nil unless there is exactly one.
func soleMember(raw []byte, name string) []byte {
	if v, times := member(raw, name); times == 1 {
		return v
	}
	return nil
}

// objectMember is soleMember for a value that must be an object.
func objectMember(raw []byte, name string) []byte {
	if v := soleMember(raw, name); isObject(v) {
		return v
	}
	return nil
}
