package main

import (
	"bytes"
	"time"

	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	"github.com/cometbft/cometbft/types"
)

// blocks: every stored height by every route, and what its hashes and signatures say.
func (j *judge) blocks() {
	status, err := j.client.Status(j.ctx)
	if !j.need("status", err) {
		return
	}
	latest := status.SyncInfo.LatestBlockHeight
	genesis, err := j.client.Genesis(j.ctx)
	if !j.need("genesis", err) {
		return
	}
	j.need("genesis", genesis.Genesis.ValidateAndComplete())
	chainID := genesis.Genesis.ChainID
	for height := int64(1); height <= latest; height++ {
		j.block(chainID, height, latest)
	}
	for _, method := range []string{"block", "header", "commit", "block_results", "validators"} {
		results := map[string]any{
			"block": new(ctypes.ResultBlock), "header": new(ctypes.ResultHeader),
			"commit": new(ctypes.ResultCommit), "block_results": new(ctypes.ResultBlockResults),
			"validators": new(ctypes.ResultValidators),
		}
		j.compare(method, map[string]any{}, results[method])
	}
	j.compare("blockchain", map[string]any{"minHeight": "1", "maxHeight": "9"}, new(ctypes.ResultBlockchainInfo))
	info, err := j.client.BlockchainInfo(j.ctx, 1, latest)
	if j.need("blockchain", err) {
		j.check(len(info.BlockMetas) > 0 && len(info.BlockMetas) <= 20, "blockchain: %d metas", len(info.BlockMetas))
		for _, meta := range info.BlockMetas {
			j.need("blockchain: meta", meta.ValidateBasic())
		}
	}
	j.searches(latest)
}

func (j *judge) block(chainID string, height, latest int64) {
	at := map[string]any{"height": jsonInt(height)}
	j.compare("block", at, new(ctypes.ResultBlock))
	j.compare("header", at, new(ctypes.ResultHeader))
	j.compare("commit", at, new(ctypes.ResultCommit))
	j.compare("block_results", at, new(ctypes.ResultBlockResults))
	j.compare("validators", at, new(ctypes.ResultValidators))
	j.compare("consensus_params", at, new(ctypes.ResultConsensusParams))
	block, err := j.client.Block(j.ctx, &height)
	if !j.need("block", err) {
		return
	}
	header := block.Block.Header
	j.need("block", block.Block.ValidateBasic())
	j.check(bytes.Equal(block.Block.Hash(), block.BlockID.Hash), "block %d: hash", height)
	parts, err := block.Block.MakePartSet(types.BlockPartSizeBytes)
	if j.need("block: parts", err) {
		j.check(parts.Header().Equals(block.BlockID.PartSetHeader), "block %d: parts", height)
	}
	byHash, err := j.client.BlockByHash(j.ctx, block.BlockID.Hash)
	if j.need("block_by_hash", err) {
		j.check(byHash.Block.HashesTo(block.BlockID.Hash), "block_by_hash %d", height)
	}
	headerByHash, err := j.client.HeaderByHash(j.ctx, block.BlockID.Hash)
	if j.need("header_by_hash", err) && headerByHash.Header != nil {
		j.check(bytes.Equal(headerByHash.Header.Hash(), block.BlockID.Hash), "header_by_hash %d", height)
	}
	j.commit(chainID, height, latest, block)
	j.results(height, latest, block)
	params, err := j.client.ConsensusParams(j.ctx, &height)
	if j.need("consensus_params", err) {
		j.need("consensus_params", params.ConsensusParams.ValidateBasic())
		j.check(bytes.Equal(params.ConsensusParams.Hash(), header.ConsensusHash), "consensus_params %d: hash", height)
	}
	for index, tx := range block.Block.Txs {
		j.tx(height, uint32(index), tx, header)
	}
}

func (j *judge) commit(chainID string, height, latest int64, block *ctypes.ResultBlock) {
	commit, err := j.client.Commit(j.ctx, &height)
	if !j.need("commit", err) {
		return
	}
	page, perPage := 1, 100
	found, err := j.client.Validators(j.ctx, &height, &page, &perPage)
	if !j.need("validators", err) {
		return
	}
	set := types.NewValidatorSet(nil)
	set.Validators = found.Validators
	j.check(found.Count == len(found.Validators) && found.Total >= found.Count, "validators %d: count", height)
	j.check(bytes.Equal(set.Hash(), block.Block.ValidatorsHash), "validators %d: hash", height)
	j.need("commit", commit.ValidateBasic(chainID))
	j.need("commit: signatures", set.VerifyCommit(chainID, block.BlockID, height, commit.Commit))
	j.check(commit.CanonicalCommit == (height < latest) || height >= latest-1, "commit %d: canonical", height)
}

func (j *judge) results(height, latest int64, block *ctypes.ResultBlock) {
	results, err := j.client.BlockResults(j.ctx, &height)
	if !j.need("block_results", err) {
		return
	}
	j.check(len(results.TxsResults) == len(block.Block.Txs), "block_results %d: count", height)
	if height == latest {
		return
	}
	next := height + 1
	header, err := j.client.Header(j.ctx, &next)
	if !j.need("header", err) {
		return
	}
	hash := types.NewResults(results.TxsResults).Hash()
	j.check(bytes.Equal(hash, header.Header.LastResultsHash), "block_results %d: hash of the results", height)
	j.check(bytes.Equal(results.AppHash, header.Header.AppHash), "block_results %d: app hash", height)
}

func (j *judge) tx(height int64, index uint32, tx types.Tx, header types.Header) {
	params := map[string]any{"hash": tx.Hash(), "prove": true}
	j.compare("tx", params, new(ctypes.ResultTx))
	for _, prove := range []bool{false, true} {
		found, err := j.client.Tx(j.ctx, tx.Hash(), prove)
		if !j.need("tx", err) {
			continue
		}
		j.check(found.Height == height && found.Index == index, "tx %X: place", tx.Hash())
		j.check(bytes.Equal(found.Tx, tx), "tx %X: bytes", tx.Hash())
		if prove {
			j.need("tx: proof", found.Proof.Validate(header.DataHash))
		}
	}
}

func (j *judge) searches(latest int64) {
	page, perPage := 1, 3
	for _, order := range []string{"", "asc", "desc"} {
		found, err := j.client.TxSearch(j.ctx, "tx.height > 0", true, &page, &perPage, order)
		if j.need("tx_search", err) {
			j.check(found.TotalCount >= len(found.Txs) && len(found.Txs) > 0, "tx_search: count")
			for _, one := range found.Txs {
				j.check(bytes.Equal(one.Tx.Hash(), one.Hash), "tx_search: hash")
				j.need("tx_search: proof", one.Proof.Validate(one.Proof.RootHash))
			}
		}
		blocks, err := j.client.BlockSearch(j.ctx, "block.height >= 1", &page, &perPage, order)
		if j.need("block_search", err) {
			j.check(int64(blocks.TotalCount) >= latest, "block_search: count")
		}
	}
	params := map[string]any{"query": "tx.height > 0", "prove": true, "per_page": "2"}
	j.compare("tx_search", params, new(ctypes.ResultTxSearch))
	params = map[string]any{"query": "block.height <= 3", "order_by": "desc"}
	j.compare("block_search", params, new(ctypes.ResultBlockSearch))
	since := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	_, err := j.client.TxSearch(j.ctx, "transfer.recipient EXISTS AND tx.height > 0", false, nil, nil, "")
	j.need("tx_search: AND", err)
	_, err = j.client.BlockSearch(j.ctx, "block.height > 0 AND block.time >= TIME "+since, nil, nil, "")
	j.need("block_search: TIME", err)
}
