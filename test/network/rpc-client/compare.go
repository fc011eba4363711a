package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sort"

	cmtjson "github.com/cometbft/cometbft/libs/json"
)

// raw is the result of a call as the node wrote it.
func (j *judge) raw(method string, params map[string]any) (json.RawMessage, error) {
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": method, "params": params,
	})
	if err != nil {
		return nil, err
	}
	response, err := http.Post(j.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("%w in %.200s", err, text)
	}
	if answer.Error != nil {
		return nil, fmt.Errorf("refused: %s", answer.Error)
	}
	return answer.Result, nil
}

// compare asks for a result and holds it against what CometBFT's type makes of it.
func (j *judge) compare(method string, params map[string]any, result any) {
	text, err := j.raw(method, params)
	if !j.need(method, err) {
		return
	}
	j.compareText(method, text, result)
}

func (j *judge) compareText(what string, text json.RawMessage, result any) {
	if !j.need(what, cmtjson.Unmarshal(text, result)) {
		return
	}
	again, err := cmtjson.Marshal(result)
	if !j.need(what, err) {
		return
	}
	var ours, theirs any
	j.need(what, json.Unmarshal(text, &ours))
	j.need(what, json.Unmarshal(again, &theirs))
	for _, difference := range differences(what, ours, theirs) {
		j.check(false, "%s", difference)
	}
	j.checks++
}

// differences of two JSON values; null, an empty list and an empty text say the same.
func differences(path string, ours, theirs any) []string {
	if isEmpty(ours) && isEmpty(theirs) {
		return nil
	}
	switch left := ours.(type) {
	case map[string]any:
		right, ok := theirs.(map[string]any)
		if !ok {
			break
		}
		var found []string
		for _, key := range keys(left, right) {
			_, here := left[key]
			_, there := right[key]
			at := path + "." + key
			switch {
			case !here && isEmpty(right[key]), !there && isEmpty(left[key]):
			case !here:
				found = append(found, fmt.Sprintf("%s is missing", at))
			case !there:
				found = append(found, fmt.Sprintf("%s is not CometBFT's: %v", at, left[key]))
			default:
				found = append(found, differences(at, left[key], right[key])...)
			}
		}
		return found
	case []any:
		right, ok := theirs.([]any)
		if !ok || len(left) != len(right) {
			break
		}
		var found []string
		for index := range left {
			at := fmt.Sprintf("%s[%d]", path, index)
			found = append(found, differences(at, left[index], right[index])...)
		}
		return found
	}
	if reflect.DeepEqual(ours, theirs) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %v, in CometBFT's form %v", path, ours, theirs)}
}

func isEmpty(value any) bool {
	if value == nil || value == "" {
		return true
	}
	list, ok := value.([]any)
	return ok && len(list) == 0
}

func keys(maps ...map[string]any) []string {
	all := map[string]bool{}
	for _, one := range maps {
		for key := range one {
			all[key] = true
		}
	}
	sorted := make([]string, 0, len(all))
	for key := range all {
		sorted = append(sorted, key)
	}
	sort.Strings(sorted)
	return sorted
}
