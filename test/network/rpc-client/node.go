package main

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/p2p"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	"github.com/cometbft/cometbft/types"
)

func jsonInt(value int64) string { return strconv.FormatInt(value, 10) }

// node: what it says of itself.
func (j *judge) node() {
	none := map[string]any{}
	j.compare("health", none, new(ctypes.ResultHealth))
	j.compare("status", none, new(ctypes.ResultStatus))
	j.compare("genesis", none, new(ctypes.ResultGenesis))
	j.compare("genesis_chunked", map[string]any{"chunk": "0"}, new(ctypes.ResultGenesisChunk))
	j.compare("net_info", none, new(ctypes.ResultNetInfo))
	j.compare("consensus_state", none, new(ctypes.ResultConsensusState))
	j.compare("dump_consensus_state", none, new(ctypes.ResultDumpConsensusState))
	j.compare("abci_info", none, new(ctypes.ResultABCIInfo))
	query := map[string]any{"path": "/cosmos.bank.v1beta1.Query/TotalSupply", "data": "", "prove": false}
	j.compare("abci_query", query, new(ctypes.ResultABCIQuery))
	j.compare("unconfirmed_txs", none, new(ctypes.ResultUnconfirmedTxs))
	j.compare("num_unconfirmed_txs", none, new(ctypes.ResultUnconfirmedTxs))
	_, err := j.client.Health(j.ctx)
	j.need("health", err)
	_, err = j.client.ABCIInfo(j.ctx)
	j.need("abci_info", err)
	_, err = j.client.DumpConsensusState(j.ctx)
	j.need("dump_consensus_state", err)
	_, err = j.client.ConsensusState(j.ctx)
	j.need("consensus_state", err)
	_, err = j.client.ABCIQuery(j.ctx, "/cosmos.bank.v1beta1.Query/TotalSupply", nil)
	j.need("abci_query", err)
	chunk, err := j.client.GenesisChunked(j.ctx, 0)
	if j.need("genesis_chunked", err) {
		_, err := base64.StdEncoding.DecodeString(chunk.Data)
		j.need("genesis_chunked", err)
	}
	info, err := j.client.NetInfo(j.ctx)
	if j.need("net_info", err) {
		j.check(info.NPeers == len(info.Peers), "net_info: count")
		for _, peer := range info.Peers {
			_, err := p2p.NewNetAddressString(string(peer.NodeInfo.ID()) + "@127.0.0.1:1")
			j.need("net_info: id", err)
		}
	}
}

// mempool: all ways to submit, each with a transaction of its own.
func (j *judge) mempool() {
	checked, err := j.client.CheckTx(j.ctx, j.txs[1])
	if j.need("check_tx", err) {
		j.check(checked.Code == 0 && checked.GasWanted > 0, "check_tx: %v", checked)
	}
	params := map[string]any{"tx": []byte(j.txs[1])}
	j.compare("check_tx", params, new(ctypes.ResultCheckTx))
	j.compare("broadcast_tx_sync", params, new(ctypes.ResultBroadcastTx))
	async, err := j.client.BroadcastTxAsync(j.ctx, j.txs[2])
	if j.need("broadcast_tx_async", err) {
		j.check(string(async.Hash) == string(j.txs[2].Hash()), "broadcast_tx_async: hash")
	}
	sync, err := j.client.BroadcastTxSync(j.ctx, j.txs[3])
	if j.need("broadcast_tx_sync", err) {
		j.check(sync.Code == 0, "broadcast_tx_sync: %v", sync)
		limit := 100
		pool, err := j.client.UnconfirmedTxs(j.ctx, &limit)
		if j.need("unconfirmed_txs", err) {
			j.check(pool.Count == len(pool.Txs), "unconfirmed_txs: count")
		}
	}
	_, err = j.client.NumUnconfirmedTxs(j.ctx)
	j.need("num_unconfirmed_txs", err)
	params = map[string]any{"tx": []byte(j.txs[4])}
	commit := new(ctypes.ResultBroadcastTxCommit)
	j.compare("broadcast_tx_commit", params, commit)
	j.check(commit.CheckTx.Code == 0 && commit.TxResult.Code == 0 && commit.Height > 0,
		"broadcast_tx_commit: %v", commit)
	// As from CometBFT, whose cache has what it has seen: its mempool.ErrTxInCache, as a text over RPC.
	again, err := j.client.BroadcastTxSync(j.ctx, j.txs[4])
	j.check(err != nil && strings.Contains(err.Error(), "tx already exists in cache"),
		"a mined transaction is not known: %v, %v", again, err)
}

// refusals: what CometBFT refuses is refused, as an error that its client understands.
func (j *judge) refusals() {
	far, zero, page := int64(1)<<53+1, int64(0), 99
	_, err := j.client.Block(j.ctx, &far)
	j.check(err != nil, "block: a far height is answered")
	_, err = j.client.Block(j.ctx, &zero)
	j.check(err != nil, "block: height 0 is answered")
	_, err = j.client.Validators(j.ctx, nil, &page, nil)
	j.check(err != nil, "validators: page 99 is answered")
	_, err = j.client.Tx(j.ctx, make([]byte, 32), false)
	j.check(err != nil, "tx: an unknown hash is answered")
	_, err = j.client.TxSearch(j.ctx, "tx.height >", false, nil, nil, "")
	j.check(err != nil, "tx_search: half a condition is answered")
	unknown, err := j.client.BlockByHash(j.ctx, make([]byte, 32))
	j.check(err == nil && unknown.Block == nil, "block_by_hash: unknown hash: %v", err)
	bad, err := j.client.BroadcastTxSync(j.ctx, types.Tx("no transaction"))
	j.check(err == nil && bad.Code != 0, "broadcast_tx_sync: takes anything: %v", err)
	refused, err := j.client.ABCIQueryWithOptions(j.ctx, "/no/such/path", nil, rpcclient.ABCIQueryOptions{Height: 1})
	j.check(err == nil && refused.Response.Code != 0, "abci_query: unknown path: %v", err)
	_, err = j.client.BroadcastEvidence(j.ctx, j.evidence())
	j.check(err != nil, "broadcast_evidence: a stranger's votes are taken")
}

// evidence is well formed, by someone who is no validator.
func (j *judge) evidence() types.Evidence {
	privVal := types.NewMockPVWithParams(ed25519.GenPrivKey(), false, false)
	key, _ := privVal.GetPubKey()
	set := types.NewValidatorSet([]*types.Validator{types.NewValidator(key, 10)})
	now := time.Now()
	status, err := j.client.Status(j.ctx)
	if !j.need("status", err) {
		return nil
	}
	vote := func(seed byte) *types.Vote {
		hash := make([]byte, 32)
		hash[0] = seed
		id := types.BlockID{Hash: hash, PartSetHeader: types.PartSetHeader{Total: 1, Hash: hash}}
		made, err := types.MakeVote(privVal, status.NodeInfo.Network, 0, 1, 0, 2, id, now)
		j.need("evidence", err)
		return made
	}
	evidence, err := types.NewDuplicateVoteEvidence(vote(1), vote(2), now, set)
	j.need("evidence", err)
	return evidence
}
