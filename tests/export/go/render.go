// Renders chats with Go's text/template the way Ollama fills a model's TEMPLATE: reads one JSON object a line
// {"template", "messages", "legacy"} on stdin, writes one JSON string a line. Written for the tests; standard library only.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"text/template"
)

type message struct{ Role, Content string }

type chat struct {
	Template string
	Messages []*message
	Legacy   bool
}

func main() {
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for dec := json.NewDecoder(in); ; {
		var c chat
		if err := dec.Decode(&c); err != nil {
			return
		}
		if err := out.Encode(render(c)); err != nil {
			panic(err)
		}
	}
}

func render(c chat) string {
	t := template.Must(template.New("").Option("missingkey=zero").Parse(c.Template))
	var b strings.Builder
	run := func(values map[string]any) {
		if err := t.Execute(&b, values); err != nil {
			panic(err)
		}
	}
	if !c.Legacy {
		system, merged := collate(c.Messages)
		run(map[string]any{"System": system, "Messages": merged, "Response": ""})
		return b.String()
	}
	// Callers of the older kind fill one exchange at a time.
	values := map[string]any{"System": "", "Prompt": "", "Response": ""}
	for _, m := range c.Messages {
		switch m.Role {
		case "system":
			values["System"] = m.Content
		case "user":
			values["Prompt"] = m.Content
		}
	}
	run(values)
	return b.String()
}

// collate joins neighbouring turns of one role and collects the system turns.
func collate(messages []*message) (string, []*message) {
	var system []string
	var merged []*message
	for _, m := range messages {
		if m.Role == "system" {
			system = append(system, m.Content)
		}
		if n := len(merged); n > 0 && merged[n-1].Role == m.Role {
			merged[n-1].Content += "\n\n" + m.Content
		} else {
			merged = append(merged, m)
		}
	}
	return strings.Join(system, "\n\n"), merged
}
