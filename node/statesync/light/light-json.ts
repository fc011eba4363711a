/** Headers, commits, validators and blocks as consensus RPC servers answer them, parsed and bounded. */
import { z } from "zod";
import { bytesToAddress } from "../../../chain/address.js";
import {
  type Commit,
  COMMIT_FLAG,
  type CommitSignature,
  MAX_VALIDATORS,
} from "../../../chain/consensus/commit.js";
import type { ConsensusHeader } from "../../../chain/consensus/consensus-header.js";
import type { DuplicateVoteEvidence } from "../../../chain/consensus/evidence.js";
import type { SignedHeader } from "../../../chain/consensus/light.js";
import {
  type Validator,
  validatorAddress,
  ValidatorSet,
} from "../../../chain/consensus/validator-set.js";
import { SIGNATURE_BYTES } from "../../../chain/consensus/vote.js";
import { bytesToHash32, type Height } from "../../../chain/hex.js";
import {
  blockId,
  height,
  hexBytes,
  int32,
  int64,
  parseEvidence,
  time,
} from "../../rpc/comet/json/evidence-json.js";

/** Most validators on one page, as CometBFT bounds it. */
export const VALIDATORS_PER_PAGE = 100;

/** Most headers of one `blockchain` answer, as CometBFT bounds it. */
export const HEADERS_PER_PAGE = 20;

/** More pieces than fit into a block's share for evidence. */
const MAX_EVIDENCE = 10_000;

/** What a block has beside its header and its transactions. */
export interface BlockExtras {
  readonly header: ConsensusHeader;
  readonly lastCommit: Commit;
  readonly evidence: readonly DuplicateVoteEvidence[];
}

/** One page of the validators of a height. */
export interface ValidatorsPage {
  readonly height: Height;
  readonly total: number;
  readonly validators: readonly Validator[];
}

const hash = hexBytes(32).transform(bytesToHash32);
const address = hexBytes(20).transform(bytesToAddress);
const version = z.string().regex(/^[0-9]{1,9}$/);

const header = z
  .object({
    version: z.object({ block: version, app: version.default("0") }),
    chain_id: z.string().max(50),
    height,
    time,
    last_block_id: blockId,
    last_commit_hash: hash,
    data_hash: hash,
    validators_hash: hash,
    next_validators_hash: hash,
    consensus_hash: hash,
    app_hash: hash,
    last_results_hash: hash,
    evidence_hash: hash,
    proposer_address: address,
  })
  .transform(
    (parsed): ConsensusHeader => ({
      blockVersion: Number(parsed.version.block),
      appVersion: Number(parsed.version.app),
      chainId: parsed.chain_id,
      height: parsed.height,
      timeNs: parsed.time,
      lastBlockId: parsed.last_block_id,
      lastCommitHash: parsed.last_commit_hash,
      dataHash: parsed.data_hash,
      validatorsHash: parsed.validators_hash,
      nextValidatorsHash: parsed.next_validators_hash,
      consensusHash: parsed.consensus_hash,
      appHash: parsed.app_hash,
      lastResultsHash: parsed.last_results_hash,
      evidenceHash: parsed.evidence_hash,
      proposerAddress: parsed.proposer_address,
    }),
  );

const signature = z
  .base64()
  .transform((text) => Uint8Array.from(Buffer.from(text, "base64")))
  .refine((bytes) => bytes.length === SIGNATURE_BYTES, "a signature is not 64 bytes");

const commitSignature = z.union([
  z
    .object({ block_id_flag: z.literal(COMMIT_FLAG.absent), validator_address: z.literal("") })
    .transform((): CommitSignature => ({ flag: COMMIT_FLAG.absent })),
  z
    .object({
      block_id_flag: z.union([z.literal(COMMIT_FLAG.commit), z.literal(COMMIT_FLAG.nil)]),
      validator_address: address,
      timestamp: time,
      signature,
    })
    .transform(
      (parsed): CommitSignature => ({
        flag: parsed.block_id_flag,
        validatorAddress: parsed.validator_address,
        timeNs: parsed.timestamp,
        signature: parsed.signature,
      }),
    ),
]);

const commit = z
  .object({
    // Block 1 carries the empty commit, of height 0.
    height: z
      .string()
      .regex(/^(0|[1-9][0-9]{0,14})$/)
      .transform(Number),
    round: int32,
    block_id: blockId,
    signatures: z.array(commitSignature).max(MAX_VALIDATORS),
  })
  .transform(
    (parsed): Commit => ({
      height: parsed.height,
      round: parsed.round,
      blockId: parsed.block_id,
      signatures: parsed.signatures,
    }),
  );

const validator = z
  .object({
    address,
    pub_key: z.object({ type: z.literal("tendermint/PubKeyEd25519"), value: z.base64() }),
    voting_power: int64,
    proposer_priority: z
      .string()
      .regex(/^-?[0-9]{1,19}$/)
      .transform(BigInt),
  })
  .transform((parsed, context): Validator => {
    const publicKey = Uint8Array.from(Buffer.from(parsed.pub_key.value, "base64"));
    const isOwn = publicKey.length === 32 && validatorAddress(publicKey) === parsed.address;
    if (!isOwn) context.addIssue({ code: "custom", message: "not the address of the key" });
    const { voting_power: power, proposer_priority: priority } = parsed;
    return { address: parsed.address, publicKey, power, priority };
  });

const signedHeaderAnswer = z.object({ signed_header: z.object({ header, commit }) });
const blockchainAnswer = z.object({
  block_metas: z.array(z.object({ header })).max(HEADERS_PER_PAGE),
});
const validatorsAnswer = z.object({
  block_height: height,
  validators: z.array(validator).max(VALIDATORS_PER_PAGE),
  total: z.string().regex(/^[0-9]{1,5}$/),
});
const blockAnswer = z.object({
  block: z.object({
    header,
    evidence: z.object({ evidence: z.array(z.unknown()).max(MAX_EVIDENCE) }),
    last_commit: commit,
  }),
});

/** The result of `commit`. Throws ZodError. */
export function parseSignedHeader(json: unknown): SignedHeader {
  return signedHeaderAnswer.parse(json).signed_header;
}

/** The headers of a result of `blockchain`, newest first. Throws ZodError. */
export function parseHeaders(json: unknown): readonly ConsensusHeader[] {
  return blockchainAnswer.parse(json).block_metas.map((meta) => meta.header);
}

/** The result of `validators`. Throws ZodError. */
export function parseValidatorsPage(json: unknown): ValidatorsPage {
  const parsed = validatorsAnswer.parse(json);
  return {
    height: parsed.block_height,
    total: Number(parsed.total),
    validators: parsed.validators,
  };
}

/** The result of `block`, without the transactions. Throws ZodError, INVALID_PARAMS. */
export function parseBlockExtras(json: unknown): BlockExtras {
  const { block } = blockAnswer.parse(json);
  return {
    header: block.header,
    lastCommit: block.last_commit,
    evidence: block.evidence.evidence.map(parseEvidence),
  };
}

/**
 * Validators as a set. Answers do not name the proposer; as CometBFT does, the one with the lowest
 * priority is taken for it: its turn cost it the total power.
 * @throws INVALID_VALIDATORS
 */
export function validatorSetOf(validators: readonly Validator[]): ValidatorSet {
  const [first, ...others] = validators;
  const lowest = others.reduce((least, one) => {
    if (least === undefined || one.priority < least.priority) return one;
    return one.priority === least.priority && one.address > least.address ? one : least;
  }, first);
  // An empty list is refused by the set itself.
  return ValidatorSet.restore(validators, lowest?.address ?? bytesToAddress(new Uint8Array(20)));
}
