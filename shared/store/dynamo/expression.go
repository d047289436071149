package dynamo

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/buzon-mail/buzon/shared/store"
)

// The live row, by every condition and never by its mere presence: `#x` is exp, `:now` the second that it is.
const (
	exprAbsent  = "attribute_not_exists(#p) OR #x <= :now"
	exprLive    = "(attribute_not_exists(#x) OR #x > :now)"
	exprPresent = "attribute_exists(#p) AND " + exprLive
	exprSame    = "#r = :rev AND " + exprLive
)

// expression is a condition as DynamoDB takes it; the zero value is none. Names go through placeholders, for some are reserved
// words, and only those that the text uses may be given.
type expression struct {
	text   *string
	names  map[string]string
	values attributes
}

func condition(c store.Condition, now int64) expression {
	var x expression
	switch c.Kind() {
	case store.Always:
		return x
	case store.IsAbsent:
		return conditionText(exprAbsent, true, now)
	case store.IsPresent:
		return conditionText(exprPresent, true, now)
	case store.IsRevision:
		x = conditionText(exprSame, false, now)
		x.names["#r"] = attrRevision
		x.values[":rev"] = &types.AttributeValueMemberN{Value: strconv.FormatUint(c.Revision(), 10)}
	}
	return x
}

func conditionText(text string, partition bool, now int64) expression {
	x := expression{text: &text, names: map[string]string{"#x": attrExpires}, values: attributes{":now": number(now)}}
	if partition {
		x.names["#p"] = attrPartition
	}
	return x
}
