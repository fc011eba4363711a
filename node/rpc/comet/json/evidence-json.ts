/** Evidence from outside, in CometBFT's JSON. */
import { z } from "zod";
import { bytesToAddress } from "../../../../chain/address.js";
import { type BlockId, msToNs } from "../../../../chain/consensus/block-id.js";
import {
  decodeDuplicateVote,
  type DuplicateVoteEvidence,
  encodeDuplicateVote,
} from "../../../../chain/consensus/evidence.js";
import { VOTE_TYPE } from "../../../../chain/consensus/vote.js";
import { bytesToHash32 } from "../../../../chain/hex.js";
import { schemaFaultText } from "../../../../runtime/config/schema-faults.js";
import { CometFault } from "../errors.js";
import { timeOfDayMs } from "../search/query.js";

/** Bytes of a fixed size in hex of either case, without prefix. */
export const hexBytes = (size: number) =>
  z
    .string()
    .regex(new RegExp(`^[0-9A-Fa-f]{${size * 2}}$`))
    .transform((digits) => Buffer.from(digits, "hex"));
/** An int64 of at least zero, as text. */
export const int64 = z
  .string()
  .regex(/^[0-9]{1,19}$/)
  .transform(BigInt);
/** A height from 1 on, as text. */
export const height = z
  .string()
  .regex(/^[1-9][0-9]{0,14}$/)
  .transform(Number);
/** An int32 of at least zero. */
export const int32 = z.number().int().min(0).max(0x7fff_ffff);
/** An RFC 3339 time, as nanoseconds since 1970. */
export const time = z.string().transform((text, context) => {
  const timeNs = parseTime(text);
  if (timeNs !== undefined) return timeNs;
  context.addIssue({ code: "custom", message: "expected an RFC 3339 time" });
  return z.NEVER;
});

/** A block id; a vote for nil has the zero id. */
export const blockId = z
  .object({ hash: z.string(), parts: z.object({ total: int32, hash: z.string() }) })
  .transform(({ hash, parts }): BlockId | undefined => {
    if (hash === "") return undefined;
    const read = (digits: string) => bytesToHash32(hexBytes(32).parse(digits));
    return { hash: read(hash), parts: { total: parts.total, hash: read(parts.hash) } };
  });

const vote = z
  .object({
    type: z.union([z.literal(VOTE_TYPE.prevote), z.literal(VOTE_TYPE.precommit)]),
    height,
    round: int32,
    block_id: blockId,
    timestamp: time,
    validator_address: hexBytes(20),
    validator_index: int32,
    signature: z.base64(),
  })
  .transform((parsed) => ({
    type: parsed.type,
    height: parsed.height,
    round: parsed.round,
    blockId: parsed.block_id,
    timeNs: parsed.timestamp,
    validatorAddress: bytesToAddress(parsed.validator_address),
    validatorIndex: parsed.validator_index,
    signature: Buffer.from(parsed.signature, "base64"),
  }));

const evidence = z.object({
  type: z.literal("tendermint/DuplicateVoteEvidence"),
  value: z.object({
    vote_a: vote,
    vote_b: vote,
    TotalVotingPower: int64,
    ValidatorPower: int64,
    Timestamp: time,
  }),
});

/**
 * Untrusted JSON to evidence; whether it is true is for consensus to find out.
 * @throws INVALID_PARAMS
 */
export function parseEvidence(json: unknown): DuplicateVoteEvidence {
  try {
    const { value } = evidence.parse(json);
    // Through the wire's decoder: it checks the order of the votes and every length.
    return decodeDuplicateVote(
      encodeDuplicateVote({
        voteA: value.vote_a,
        voteB: value.vote_b,
        totalPower: value.TotalVotingPower,
        validatorPower: value.ValidatorPower,
        timeNs: value.Timestamp,
      }),
    );
  } catch (cause) {
    throw new CometFault("INVALID_PARAMS", `evidence: ${schemaFaultText(cause)}`, { cause });
  }
}

/** Nanoseconds since 1970 of an RFC 3339 time; undefined for anything else. */
function parseTime(text: string): bigint | undefined {
  const [, seconds = "", fraction = "", zone = ""] =
    /^([^.]{19})(?:\.([0-9]{1,9}))?(Z|[-+].*)$/.exec(text) ?? [];
  const timeMs = timeOfDayMs(`${seconds}${zone}`);
  return timeMs === undefined ? undefined : msToNs(timeMs) + BigInt(fraction.padEnd(9, "0"));
}
