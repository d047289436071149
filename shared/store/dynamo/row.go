package dynamo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/buzon-mail/buzon/shared/store"
)

// The attributes of an item. They are stored with every row, so they are short and never change.
const (
	attrPartition = "pk"
	attrSort      = "sk"
	attrData      = "data"
	attrFormat    = "fmt"
	attrRevision  = "rev"
	attrExpires   = "exp"
	counterPrefix = "+" // so that no counter has the name of another attribute
)

// attributes is an item as AWS has it.
type attributes = map[string]types.AttributeValue

func textValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func attributesOf(key store.Key) attributes {
	return attributes{attrPartition: textValue(key.Partition), attrSort: textValue(key.Sort)}
}

// format writes a row that a put replaces whole.
func format(item store.Item) attributes {
	a := attributesOf(item.Key)
	a[attrFormat] = number(int64(item.Format))
	a[attrRevision] = &types.AttributeValueMemberN{Value: strconv.FormatUint(item.Revision, 10)}
	if len(item.Data) > 0 {
		a[attrData] = &types.AttributeValueMemberB{Value: item.Data}
	}
	if expires := store.Seconds(item.Expires); expires != 0 {
		a[attrExpires] = number(expires)
	}
	return a
}

// parse reads an item. One that this package can't have written is an error and not a row with gaps.
func parse(table store.Table, a attributes) (store.Item, error) {
	item := store.Item{Key: store.Key{Table: table}}
	for name, value := range a {
		if err := parseAttribute(&item, name, value); err != nil {
			return store.Item{}, err
		}
	}
	if item.Key.Partition == "" || item.Key.Sort == "" || item.Format == 0 {
		return store.Item{}, damaged("key or format")
	}
	return item, nil
}

func parseAttribute(item *store.Item, name string, value types.AttributeValue) error {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		switch name {
		case attrPartition:
			item.Key.Partition = v.Value
		case attrSort:
			item.Key.Sort = v.Value
		}
		return nil
	case *types.AttributeValueMemberB:
		if name == attrData {
			item.Data = v.Value[:len(v.Value):len(v.Value)]
		}
		return nil
	case *types.AttributeValueMemberN:
		return parseNumber(item, name, v.Value)
	}
	return nil // of another program; a put of ours would drop it
}

func parseNumber(item *store.Item, name, value string) (err error) {
	switch name {
	case attrFormat:
		var n uint64
		n, err = strconv.ParseUint(value, 10, 8)
		item.Format = uint8(n) //nolint:gosec // parsed as 8 bits
	case attrRevision:
		item.Revision, err = strconv.ParseUint(value, 10, 64)
	case attrExpires:
		var n int64
		n, err = strconv.ParseInt(value, 10, 64)
		item.Expires = store.FromSeconds(n)
	default:
		counter, ok := strings.CutPrefix(name, counterPrefix)
		if !ok {
			return nil
		}
		if item.Counters == nil {
			item.Counters = make(map[string]int64)
		}
		item.Counters[counter], err = strconv.ParseInt(value, 10, 64)
	}
	if err != nil {
		return damaged("a number")
	}
	return nil
}

func damaged(what string) error { return fmt.Errorf("dynamo: damaged row: %s", what) }
