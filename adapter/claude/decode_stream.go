package claude

type wireStream struct {
	Type    string `json:"type"`
	Message struct {
		ID    string `json:"id"`
		Model string `json:"model"`
	} `json:"message"`
	Block block `json:"content_block"`
	Delta struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
	} `json:"delta"`
	Usage *Usage `json:"usage"`
}

// streamEvent reads one event of the Messages API, as the CLI passes it on under --include-partial-messages.
func (f *frame) streamEvent(e *Event) {
	var w wireStream
	fill(f.Event, &w)
	e.Kind, e.Subtype, e.MessageID, e.Model, e.Usage = KindStream, w.Type, w.Message.ID, w.Message.Model, w.Usage
	switch {
	case w.Type == "content_block_start" && w.Block.Type == "tool_use":
		e.Kind, e.ToolID, e.ToolName = KindToolStart, w.Block.ID, w.Block.Name
	case w.Type == "content_block_delta" && w.Delta.Type == "text_delta":
		e.Kind, e.Text = KindTextDelta, w.Delta.Text
	case w.Type == "content_block_delta" && w.Delta.Type == "thinking_delta":
		e.Kind, e.Text = KindThinkingDelta, w.Delta.Thinking
	}
}
