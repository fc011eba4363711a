/**
 * `cosmos.slashing.v1beta1.Query` and `cosmos.evidence.v1beta1.Query`: who misses blocks, and who
 * signed two.
 */
import { type Address, addressToBytes, consensusText } from "../../../../chain/address.js";
import { type DuplicateVoteEvidence, hashEvidence } from "../../../../chain/consensus/evidence.js";
import { sha256 } from "../../../../chain/hashes.js";
import type { Height } from "../../../../chain/hex.js";
import { encodeMessage } from "../../../../chain/protobuf/codec.js";
import type { ProtoMessage } from "../../../../chain/protobuf/values.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import {
  readSlashingParams,
  type SigningInfo,
  signingInfo,
} from "../../../modules/reads/slashing-reads.js";
import { listValidators, readSlashes } from "../../../modules/reads/staking-reads.js";
import { invalidArgument, notFound, QueryFault } from "../errors.js";
import { consensusAddressIn, secondsOf } from "../module-values.js";
import { pageOf, pageRequest } from "../paging.js";
import type { QueryContext, QueryHandlers } from "../registry.js";
import type { ModuleSources } from "../sources.js";

const SLASHING = "/cosmos.slashing.v1beta1.Query";
const EVIDENCE = "/cosmos.evidence.v1beta1.Query";
const EQUIVOCATION = "cosmos.evidence.v1beta1.Equivocation";

const NS_PER_SECOND = 1_000_000_000n;

/** The queries of these services. */
export function slashingQueries(sources: ModuleSources): QueryHandlers {
  const { modules } = sources;
  return {
    [`${SLASHING}/Params`]: async (_request, { height, signal }) => {
      const params = await modules.at(height).read(readSlashingParams, signal);
      return {
        params: {
          signed_blocks_window: params.signedBlocksWindow,
          min_signed_per_window: params.minSignedPerWindow,
          downtime_jail_duration: secondsOf(Number(params.downtimeJailMs)),
          slash_fraction_double_sign: params.slashFractionDoubleSign,
          slash_fraction_downtime: params.slashFractionDowntime,
        },
      };
    },
    [`${SLASHING}/SigningInfo`]: async (request, { height, signal }) => {
      const address = consensusAddressIn(request, "cons_address");
      const info = await modules.at(height).read((state) => signingInfo(state, address), signal);
      if (info === undefined) {
        throw notFound(`SigningInfo not found for validator ${consensusText(address)}`);
      }
      return { val_signing_info: infoMessage(address, info, height) };
    },
    [`${SLASHING}/SigningInfos`]: async (request, { height, signal }) => {
      const known = await modules.at(height).read(
        (state) =>
          listValidators(state).flatMap(({ consensusAddress }) => {
            const info = signingInfo(state, consensusAddress);
            return info === undefined ? [] : [{ address: consensusAddress, info }];
          }),
        signal,
      );
      const ordered = known.toSorted((one, other) => (one.address < other.address ? -1 : 1));
      const { items, response } = pageOf(ordered, pageRequest(request), ({ address }) =>
        addressToBytes(address),
      );
      return {
        info: items.map(({ address, info }) => infoMessage(address, info, height)),
        pagination: response,
      };
    },
    ...evidenceQueries(sources),
  };
}

/** `ValidatorSigningInfo`. */
function infoMessage(address: Address, info: SigningInfo, height: Height): ProtoMessage {
  return {
    address: consensusText(address),
    start_height: BigInt(info.startHeight),
    index_offset: BigInt(Math.max(0, height - info.startHeight)),
    jailed_until: secondsOf(info.jailedUntilMs),
    tombstoned: info.isTombstoned,
    missed_blocks_counter: BigInt(info.missedBlocks),
  };
}

function evidenceQueries(sources: ModuleSources): QueryHandlers {
  return {
    [`${EVIDENCE}/AllEvidence`]: async (request, context) => {
      const page = pageRequest(request);
      const byHash = (one: Uint8Array, other: Uint8Array) =>
        Buffer.compare(hashOf(one), hashOf(other));
      const { found, prunedHeight } = await allEvidence(sources, context);
      if (prunedHeight !== undefined) throw prunedFault(prunedHeight);
      const ordered = found.toSorted(byHash);
      const { items, response } = pageOf(ordered, page, hashOf);
      return { evidence: items.map(anyOfEvidence), pagination: response };
    },
    [`${EVIDENCE}/Evidence`]: async (request, context) => {
      const text = request.text("hash");
      const wanted = text === "" ? request.bytes("evidence_hash") : hexOf(text);
      if (wanted.length === 0) throw invalidArgument("invalid request; hash is empty");
      const { found, prunedHeight } = await allEvidence(sources, context);
      const evidence = found.find((bytes) => Buffer.compare(hashOf(bytes), wanted) === 0);
      if (evidence !== undefined) return { evidence: anyOfEvidence(evidence) };
      if (prunedHeight !== undefined) throw prunedFault(prunedHeight);
      throw notFound(`evidence ${Buffer.from(wanted).toString("hex").toUpperCase()} not found`);
    },
  };
}

function hexOf(text: string): Buffer {
  if (!/^([0-9a-fA-F]{2}){1,64}$/.test(text)) throw invalidArgument("invalid evidence hash");
  return Buffer.from(text, "hex");
}

function hashOf(evidence: Uint8Array): Uint8Array {
  return sha256(evidence);
}

function anyOfEvidence(value: Uint8Array): ProtoMessage {
  return { type_url: `/${EQUIVOCATION}`, value };
}

/** What is not here any more may be what is asked for: it is not called unknown. */
function prunedFault(height: Height): QueryFault {
  const text = `block ${height}, in which a validator was slashed, is pruned on this node`;
  return new QueryFault("FAILED_PRECONDITION", text);
}

/** Blocks with slashes that are looked at for one piece of evidence: it comes soon after its votes. */
const MAX_LOOKED_AT = 100;

/**
 * Bytes of what was punished: it stands in the blocks in which its validator was slashed. Who signed
 * twice is out for ever; slashes of all others have no evidence. What validators had that are gone, or that
 * lost nothing by it, the state does not tell any more: those blocks are found by their evidence and events.
 * @returns with the oldest of these heights whose block is pruned
 */
async function allEvidence(
  sources: ModuleSources,
  { height, signal }: QueryContext,
): Promise<{ readonly found: readonly Buffer[]; readonly prunedHeight: Height | undefined }> {
  const { consensus } = sources.chain;
  const told = await sources.modules.at(height).read(
    (state) =>
      listValidators(state)
        .filter(({ consensusAddress }) => signingInfo(state, consensusAddress)?.isTombstoned)
        .flatMap(({ operator }) => readSlashes(state, operator)),
    signal,
  );
  const heights = new Set(told.map((slash) => slash.height));
  let prunedHeight: Height | undefined;
  for (const slashed of heights) {
    const isPruned = consensus.outline(slashed) === undefined;
    if (isPruned && slashed < (prunedHeight ?? height)) prunedHeight = slashed;
    await breathe(signal);
  }
  for await (const at of blocksWithEvidence(sources, height, signal)) heights.add(at);
  const all: DuplicateVoteEvidence[] = [];
  for (const at of [...heights].toSorted((one, other) => one - other)) {
    all.push(...(consensus.outline(at)?.evidence ?? []));
    await breathe(signal);
  }
  const isOut = await sources.modules
    .at(height)
    .read(
      (state) =>
        all.map(({ voteA }) => signingInfo(state, voteA.validatorAddress)?.isTombstoned === true),
      signal,
    );
  const type = sources.types.message(EQUIVOCATION);
  const found = all
    .filter((_, index) => isOut[index])
    .map((evidence) => encodeMessage(type, equivocation(evidence)));
  return { found, prunedHeight };
}

/** Blocks up to a height with the evidence that this node has had, as far as it keeps them. */
async function* blocksWithEvidence(
  { chain: { consensus, events } }: ModuleSources,
  height: Height,
  signal: AbortSignal,
): AsyncIterable<Height> {
  for await (const { hash, voteHeight } of consensus.committedEvidence()) {
    let left = MAX_LOOKED_AT;
    for await (const at of events.heightsOfType("slash", voteHeight + 1, height)) {
      const evidence = consensus.outline(at)?.evidence ?? [];
      const isThere = evidence.some((one) => hashEvidence(one) === hash);
      if (isThere) yield at;
      if (isThere || --left === 0) break;
      await breathe(signal);
    }
  }
}

function equivocation({ voteA, timeNs, validatorPower }: DuplicateVoteEvidence): ProtoMessage {
  return {
    height: BigInt(voteA.height),
    time: { seconds: timeNs / NS_PER_SECOND, nanos: Number(timeNs % NS_PER_SECOND) },
    power: validatorPower,
    consensus_address: consensusText(voteA.validatorAddress),
  };
}
