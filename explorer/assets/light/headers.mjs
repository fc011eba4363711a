/**
 * A light client's rules (CometBFT 0.38, light/verifier.go), in the browser: from a header that the
 * reader trusts to another one, with nothing but headers, commits and validators as a node answers
 * them. Written apart from the node's own code, so that it does not share a mistake with it.
 */
import {
  bytesField,
  check,
  concat,
  fixedField,
  fromBase64,
  fromHex,
  integerField,
  messageField,
  NotProven,
  same,
  toHex,
  varint,
} from "./bytes.mjs";

/** CometBFT's usual trusting period: validators that left longer ago answer for nothing. */
const TRUST_PERIOD_NS = 7n * 86_400n * 1_000_000_000n;

/** How far clocks of validators may run ahead. */
const MAX_DRIFT_NS = 10_000_000_000n;

/** Headers that are fetched on the way to one: more than any bisection of a week needs. */
const MAX_FETCHES = 200;

/** Pages of 20 headers on the way back. */
const MAX_PAGES_BACK = 500;

const COMMIT_VOTE = 2;
const PRECOMMIT = 2;
const BLOCK_PROTOCOL = "11";

/** Any key that there is: the one of RFC 8032, 7.1, TEST 1. */
const SOME_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/** Hashes or signatures cannot be checked here: whoever asks knows as much as before. */
export class NothingToCheckWith extends Error {}

/**
 * Looks whether this browser can check at all: WebCrypto is there for pages over https and of one's own
 * machine only, and older browsers have none for Ed25519. Without it everything would look refuted.
 * @throws NothingToCheckWith
 */
export async function assertCanCheck() {
  try {
    await sha256(new Uint8Array(0));
    await importedKey(fromHex(SOME_KEY));
  } catch (error) {
    throw new NothingToCheckWith(error.message, { cause: error });
  }
}

async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** Root of a Merkle tree (RFC 6962). */
async function merkleRoot(leaves) {
  if (leaves.length === 0) return sha256(new Uint8Array(0));
  let level = await Promise.all(leaves.map((leaf) => sha256(concat(Uint8Array.of(0), leaf))));
  while (level.length > 1) {
    const next = [];
    for (let at = 0; at < level.length; at += 2) {
      const [left, right] = [level[at], level[at + 1]];
      next.push(right === undefined ? left : await sha256(concat(Uint8Array.of(1), left, right)));
    }
    level = next;
  }
  return level[0];
}

/** RFC 3339 in UTC to nanoseconds since 1970. */
export function timeNs(text) {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(text);
  check(match !== null, "a time is malformed");
  const seconds = BigInt(Date.parse(`${match[1]}Z`)) / 1_000n;
  return seconds * 1_000_000_000n + BigInt((match[2] ?? "").padEnd(9, "0") || 0);
}

function encodeTime(text) {
  const ns = timeNs(text);
  return concat(integerField(1, ns / 1_000_000_000n), integerField(2, ns % 1_000_000_000n));
}

function encodeBlockId(id) {
  const parts = concat(integerField(1, id.parts.total), bytesField(2, fromHex(id.parts.hash)));
  return concat(bytesField(1, fromHex(id.hash)), messageField(2, parts));
}

/** Hash of a header: the Merkle root over its fourteen fields. */
export async function headerHash(header) {
  const wrapped = (value) => bytesField(1, value);
  const hash = (hex) => wrapped(fromHex(hex));
  const { block, app = "0" } = header.version;
  return merkleRoot([
    concat(integerField(1, block), integerField(2, app)),
    wrapped(header.chain_id),
    integerField(1, header.height),
    encodeTime(header.time),
    encodeBlockId(header.last_block_id),
    hash(header.last_commit_hash),
    hash(header.data_hash),
    hash(header.validators_hash),
    hash(header.next_validators_hash),
    hash(header.consensus_hash),
    hash(header.app_hash),
    hash(header.last_results_hash),
    hash(header.evidence_hash),
    hash(header.proposer_address),
  ]);
}

/** What a validator signed when it voted for the block of a commit. */
function signBytes(chainId, commit, signature) {
  const vote = concat(
    integerField(1, PRECOMMIT),
    fixedField(2, commit.height),
    fixedField(3, commit.round),
    messageField(4, encodeBlockId(commit.block_id)),
    messageField(5, encodeTime(signature.timestamp)),
    bytesField(6, chainId),
  );
  return concat(varint(vote.length), vote);
}

/** A header with its commit and validators, taken apart; nothing is believed yet. */
export async function readSigned(answer) {
  const { signed_header: signed } = answer.commit;
  const validators = [];
  for (const page of answer.validators) {
    for (const { pub_key: key, voting_power: power } of page.validators) {
      check(/^[1-9][0-9]{0,18}$/.test(power), "a validator's power is malformed");
      check(key.type === "tendermint/PubKeyEd25519", "a key is not of Ed25519");
      const publicKey = fromBase64(key.value);
      const address = toHex((await sha256(publicKey)).subarray(0, 20));
      validators.push({ publicKey, power: BigInt(power), address });
    }
  }
  const addresses = new Set(validators.map(({ address }) => address));
  check(addresses.size === validators.length, "a validator is named twice");
  return {
    header: signed.header,
    height: Number(signed.header.height),
    hash: await headerHash(signed.header),
    commit: signed.commit,
    validators,
  };
}

function totalOf(validators) {
  return validators.reduce((sum, { power }) => sum + power, 0n);
}

function importedKey(publicKey) {
  return crypto.subtle.importKey("raw", publicKey, "Ed25519", false, ["verify"]);
}

async function isSigned(publicKey, message, signature) {
  const key = await importedKey(publicKey);
  return crypto.subtle.verify("Ed25519", key, signature, message);
}

/** Checks what a header says of itself: validators, commit, two thirds of the power. */
export async function checkSelf(block, chainId) {
  const { header, commit, validators, hash } = block;
  const where = `header ${header.height}: `;
  check(header.version.block === BLOCK_PROTOCOL, `${where}another block protocol`);
  check(header.chain_id === chainId, `${where}of another chain`);
  check(commit.height === header.height, `${where}the commit is for another height`);
  check(same(fromHex(commit.block_id.hash), hash), `${where}the commit signs another header`);
  const leaves = validators.map(({ publicKey, power }) =>
    concat(messageField(1, bytesField(1, publicKey)), integerField(2, power)),
  );
  const root = await merkleRoot(leaves);
  check(same(root, fromHex(header.validators_hash)), `${where}these are not its validators`);
  check(commit.signatures.length === validators.length, `${where}votes of other validators`);
  const power = await signedPower(block, validators, (index) => validators[index]);
  const total = totalOf(validators);
  check(power * 3n > total * 2n, `${where}only ${power} of ${total} signed`);
}

/**
 * Power of those of a set whose vote for the block is signed rightly. A signature that is not counts for
 * nothing, and hinders nobody else's: nodes count some that no browser does (ZIP-215), and one validator that
 * makes such ones would keep every header from being proven.
 */
async function signedPower({ header, commit }, set, validatorOf) {
  let power = 0n;
  const seen = new Set();
  for (const [index, signature] of commit.signatures.entries()) {
    if (signature.block_id_flag !== COMMIT_VOTE) continue;
    const validator = validatorOf(index, signature);
    if (validator === undefined || seen.has(validator.address)) continue;
    seen.add(validator.address);
    const message = signBytes(header.chain_id, commit, signature);
    const bytes = fromBase64(signature.signature);
    if (await isSigned(validator.publicKey, message, bytes)) power += validator.power;
  }
  return power;
}

/** Whether a trusted header leads to a newer one directly; false where one in between may. */
async function leadsTo(trusted, next, chainId) {
  await checkSelf(next, chainId);
  check(
    timeNs(next.header.time) > timeNs(trusted.header.time),
    `header ${next.height} is not newer than ${trusted.height}`,
  );
  if (next.height === trusted.height + 1) {
    const isNext = next.header.validators_hash === trusted.header.next_validators_hash;
    check(isNext, `header ${next.height} has validators that ${trusted.height} does not name`);
    return true;
  }
  const byAddress = new Map(trusted.validators.map((one) => [one.address, one]));
  const power = await signedPower(next, trusted.validators, (_index, { validator_address }) =>
    byAddress.get(validator_address.toLowerCase()),
  );
  return power * 3n > totalOf(trusted.validators);
}

/**
 * Whether a header follows from the one that the reader trusts.
 * @param {{ height: number, hash: string }} pin height and consensus hash, hex
 * @param target as `readSigned` gives it
 * @param source `{ header(height), headers(to) }`: answers of a node that is believed in nothing
 * @throws NotProven
 */
export async function followFrom(pin, target, source, { chainId, nowMs }) {
  const nowNs = BigInt(nowMs) * 1_000_000n;
  const drift = timeNs(target.header.time) - nowNs;
  check(drift < MAX_DRIFT_NS, "the header has a time from the future");
  const trusted = await readSigned(await source.header(pin.height));
  check(trusted.height === pin.height, "the explorer gave another header than the trusted one");
  check(same(trusted.hash, fromHex(pin.hash)), "the trusted header does not have the trusted hash");
  await checkSelf(trusted, chainId);
  // Downwards hashes prove, however old they are: nobody's signature of today is asked for.
  if (target.height < trusted.height) return goBack(trusted, target, source, chainId);
  if (target.height === trusted.height) {
    check(same(target.hash, trusted.hash), "it is another header than the trusted one");
    return;
  }
  const age = nowNs - timeNs(trusted.header.time);
  check(age < TRUST_PERIOD_NS, "the trusted header is older than a week: choose a newer one");
  let lower = trusted;
  const above = [target];
  for (let fetches = 0; above.length > 0; ) {
    const next = above.at(-1);
    if (await leadsTo(lower, next, chainId)) {
      lower = next;
      above.pop();
      continue;
    }
    check(fetches++ < MAX_FETCHES, "too many headers lie between the trusted one and this one");
    const middle = Math.floor((lower.height + next.height) / 2);
    const found = await readSigned(await source.header(middle));
    check(found.height === middle, "the explorer gave a header of another height");
    above.push(found);
  }
}

/** Older headers are proven by the hashes that newer ones name. */
async function goBack(trusted, target, source, chainId) {
  let newer = trusted.header;
  for (let page = 0; Number(newer.height) > target.height; page++) {
    check(page < MAX_PAGES_BACK, "it is too far below the trusted header: trust an older one");
    const { headers } = await source.headers(Number(newer.height) - 1);
    check(Array.isArray(headers) && headers.length > 0, "the explorer lacks older headers");
    for (const older of headers) {
      if (Number(newer.height) <= target.height) break;
      check(older.chain_id === chainId, "an older header is of another chain");
      check(Number(older.height) === Number(newer.height) - 1, "older headers have gaps");
      const hash = await headerHash(older);
      check(same(hash, fromHex(newer.last_block_id.hash)), `header ${older.height} is another one`);
      newer = older;
    }
  }
  check(same(await headerHash(newer), target.hash), "the older header is another one");
}

export { NotProven };
