package main

import (
	"fmt"
	"time"

	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	jsonrpcclient "github.com/cometbft/cometbft/rpc/jsonrpc/client"
	"github.com/cometbft/cometbft/types"
)

const subscriber = "judge"

// Longest wait for an event that must come.
const eventTimeout = 30 * time.Second

// events: one kind after the other, since a client may have five subscriptions; and the events of a
// transaction of its own, by every form of a query.
func (j *judge) events() {
	kinds := []string{
		types.EventNewBlock, types.EventNewBlockHeader, types.EventNewBlockEvents,
		types.EventNewRound, types.EventNewRoundStep, types.EventVote, types.EventPolka,
		types.EventCompleteProposal, types.EventLock,
	}
	for _, kind := range kinds {
		query := fmt.Sprintf("tm.event='%s'", kind)
		channel, err := j.client.Subscribe(j.ctx, subscriber, query)
		if !j.need("subscribe "+kind, err) {
			continue
		}
		if event := j.await(kind, channel); event != nil {
			j.check(event.Query == query, "%s: query %q", kind, event.Query)
			j.check(len(event.Events["tm.event"]) == 1 && event.Events["tm.event"][0] == kind,
				"%s: tm.event is %v", kind, event.Events["tm.event"])
			j.eventData(kind, event)
		}
		j.need("unsubscribe "+kind, j.client.Unsubscribe(j.ctx, subscriber, query))
	}
	j.transactionEvent()
	for _, kind := range kinds {
		j.eventText(kind)
	}
}

// eventText holds the text of an event against CometBFT's form of it.
func (j *judge) eventText(kind string) {
	socket, err := jsonrpcclient.NewWS(j.url, "/websocket")
	if !j.need("websocket", err) || !j.need("websocket", socket.Start()) {
		return
	}
	defer func() { j.need("websocket", socket.Stop()) }()
	j.need("subscribe "+kind, socket.Subscribe(j.ctx, fmt.Sprintf("tm.event='%s'", kind)))
	late := time.After(eventTimeout)
	for {
		select {
		case response := <-socket.ResponsesCh:
			if response.Error != nil {
				j.need("subscribe "+kind, response.Error)
				return
			}
			// The first answer only says that the subscription is made.
			if string(response.Result) != "{}" {
				j.compareText(kind, response.Result, new(ctypes.ResultEvent))
				return
			}
		case <-late:
			j.check(false, "%s: no text within %v", kind, eventTimeout)
			return
		}
	}
}

func (j *judge) eventData(kind string, event *ctypes.ResultEvent) {
	switch data := event.Data.(type) {
	case types.EventDataNewBlock:
		j.need(kind, data.Block.ValidateBasic())
		j.check(data.Block.HashesTo(data.BlockID.Hash), "%s: hash", kind)
	case types.EventDataNewBlockHeader:
		j.need(kind, data.Header.ValidateBasic())
	case types.EventDataNewBlockEvents:
		j.check(data.Height > 0, "%s: height", kind)
	case types.EventDataNewRound:
		j.check(data.Height > 0 && len(data.Proposer.Address) == 20, "%s: %v", kind, data)
	case types.EventDataRoundState:
		j.check(data.Height > 0 && data.Step != "", "%s: %v", kind, data)
	case types.EventDataCompleteProposal:
		j.need(kind, data.BlockID.ValidateBasic())
	case types.EventDataVote:
		j.need(kind, data.Vote.ValidateBasic())
	default:
		j.check(false, "%s: data of type %T", kind, event.Data)
	}
}

// transactionEvent is left subscribed for `unsubscribe` to end.
func (j *judge) transactionEvent() {
	tx := j.txs[0]
	query := fmt.Sprintf("tm.event='Tx' AND tx.hash='%X'", tx.Hash())
	channel, err := j.client.Subscribe(j.ctx, subscriber, query)
	if !j.need("subscribe Tx", err) {
		return
	}
	sent, err := j.client.BroadcastTxSync(j.ctx, tx)
	if !j.need("broadcast_tx_sync", err) {
		return
	}
	j.check(sent.Code == 0, "broadcast_tx_sync: %v", sent)
	event := j.await("Tx", channel)
	if event == nil {
		return
	}
	data, ok := event.Data.(types.EventDataTx)
	j.check(ok, "Tx: data of type %T", event.Data)
	j.check(string(data.Tx) == string(tx) && data.Height > 0, "Tx: bytes or height")
	j.check(len(event.Events["tx.height"]) == 1, "Tx: tx.height is %v", event.Events["tx.height"])
	// At the moment of the event the transaction can be read by every route.
	_, err = j.client.Tx(j.ctx, tx.Hash(), true)
	j.need("tx after its event", err)
}

func (j *judge) await(kind string, channel <-chan ctypes.ResultEvent) *ctypes.ResultEvent {
	select {
	case event := <-channel:
		j.checks++
		return &event
	case <-time.After(eventTimeout):
		j.check(false, "%s: no event within %v", kind, eventTimeout)
		return nil
	}
}

func (j *judge) unsubscribe() {
	j.need("unsubscribe_all", j.client.UnsubscribeAll(j.ctx, subscriber))
	j.need("stop", j.client.Stop())
}
