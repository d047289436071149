package jsonwalk

// Object hands out the members of an object one after the other. The zero value is of no use; see Members.
type Object struct {
	Name  []byte // the name's token, quotes included
	Value []byte // the value's text
	data  []byte
	at    int
	depth int
	begun bool
	err   error
}

// Members reads the object that is the whole of data, white space aside.
func Members(data []byte) Object { return MembersAt(data, 0) }

// MembersAt is Members for an object that is itself nested that deep.
func MembersAt(data []byte, depth int) Object {
	return Object{data: data, at: Space(data, 0), depth: depth + 1}
}

// Next moves to the next member; false at the end and on the first fault, which Err then tells.
func (o *Object) Next() bool {
	if o.err != nil {
		return false
	}
	more, err := o.next()
	o.err = err
	return more && err == nil
}

func (o *Object) next() (bool, error) {
	at, done, err := Step(o.data, o.at, o.depth, '{', o.begun)
	if err != nil || done {
		o.at = at
		return false, err
	}
	o.begun = true
	end, err := String(o.data, at)
	if err != nil {
		return false, err
	}
	o.Name = o.data[at:end]
	at = Space(o.data, end)
	if at >= len(o.data) || o.data[at] != ':' {
		return false, ErrSyntax
	}
	at = Space(o.data, at+1)
	if end, err = Value(o.data, at, o.depth); err != nil {
		return false, err
	}
	o.Value, o.at = o.data[at:end], end
	return true, nil
}

// End checks that nothing but white space follows the object. It is called once Next has returned false.
func (o *Object) End() error {
	if o.err == nil && Space(o.data, o.at) != len(o.data) {
		return ErrSyntax
	}
	return o.err
}

// Array hands out the items of an array one after the other. The zero value is of no use; see Items.
type Array struct {
	Value []byte // the item's text
	data  []byte
	at    int
	depth int
	begun bool
	err   error
}

// Items reads the array that is the whole of data, white space aside.
func Items(data []byte) Array { return ItemsAt(data, 0) }

// ItemsAt is Items for an array that is itself nested that deep.
func ItemsAt(data []byte, depth int) Array {
	return Array{data: data, at: Space(data, 0), depth: depth + 1}
}

// Next moves to the next item; false at the end and on the first fault, which Err then tells.
func (a *Array) Next() bool {
	if a.err != nil {
		return false
	}
	at, done, err := Step(a.data, a.at, a.depth, '[', a.begun)
	if err == nil && !done {
		a.begun = true
		var end int
		if end, err = Value(a.data, at, a.depth); err == nil {
			a.Value, at = a.data[at:end], end
		}
	}
	a.at, a.err = at, err
	return err == nil && !done
}

// Err is the fault that ended the walk; nil when the array is sound.
func (a *Array) Err() error { return a.err }

// Step moves to the next element of the object or array that open, '{' or '[', begins: over the opening bracket at first,
// over a comma later, or over the closing bracket, which is done. depth counts the container itself.
func Step(data []byte, at, depth int, open byte, begun bool) (next int, done bool, err error) {
	end := open + 2 // ASCII: the closing bracket stands two places behind the opening one
	if depth > MaxDepth {
		return at, false, ErrDepth
	}
	if !begun {
		if at >= len(data) || data[at] != open {
			return at, false, ErrSyntax
		}
		at = Space(data, at+1)
		if at < len(data) && data[at] == end {
			return at + 1, true, nil
		}
		return at, false, nil
	}
	at = Space(data, at)
	switch {
	case at >= len(data):
		return at, false, ErrSyntax
	case data[at] == end:
		return at + 1, true, nil
	case data[at] == ',':
		return Space(data, at+1), false, nil
	}
	return at, false, ErrSyntax
}
