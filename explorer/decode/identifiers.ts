/** Whatever people paste: heights, hashes and addresses in any of their forms. */
import {
  type Address,
  CONSENSUS_PREFIX,
  parseBech32,
  parsePastedAddress,
  toChecksumAddress,
} from "../../chain/address.js";
import { type Hash32, parseHash32 } from "../../chain/hex.js";

/** What a text may stand for. */
export type Identifier =
  | { readonly kind: "height"; readonly height: number }
  /** Of a block or a transaction, EVM or Cosmos: only the chain can tell. */
  | { readonly kind: "hash"; readonly hash: Hash32 }
  | { readonly kind: "address"; readonly address: Address }
  /** Of a key of consensus (addrvalcons1...). */
  | { readonly kind: "validator"; readonly consensus: Address }
  /** Decimal digits. */
  | { readonly kind: "proposal"; readonly id: string };

const HEIGHT = /^[0-9]{1,15}$/;
const HASH = /^(?:0x)?([0-9a-f]{64})$/i;
const HEX_ADDRESS = /^(?:0x)?([0-9a-f]{40})$/i;

/** Heights with separators, as people copy them: "1,234", "1 234", "#1234". */
const WRITTEN_HEIGHT = /^#?[0-9]{1,3}([ ,.'_][0-9]{3})+$|^#[0-9]{1,15}$/;

/** Proposals as people name them: "proposal 7", "Prop #7". */
const PROPOSAL = /^(?:proposal|prop|gov|vorschlag)\.? *#? *([1-9][0-9]{0,17})$/i;

/** A 32-byte hash in any case, with or without `0x`; undefined for anything else. */
export function readHash(text: string): Hash32 | undefined {
  const digits = HASH.exec(text.trim())?.[1];
  return digits === undefined ? undefined : parseHash32(`0x${digits}`);
}

/** An account as hex in any case, with or without `0x`, or as bech32; undefined for anything else. */
export function readAddress(text: string): Address | undefined {
  return addressIn(() => parsePastedAddress(text));
}

/**
 * An account that somebody may pay: as bech32, or as hex with or without `0x`, all lower case or with a
 * right EIP-55 checksum. Undefined for anything else.
 */
export function readPayee(text: string): Address | undefined {
  const address = readAddress(text);
  const digits = HEX_ADDRESS.exec(text.trim())?.[1];
  if (address === undefined || digits === undefined) return address;
  const forms: readonly string[] = [address, toChecksumAddress(address)];
  return forms.includes(`0x${digits}`) ? address : undefined;
}

/** A height; undefined for anything else. */
export function readHeight(text: string): number | undefined {
  const trimmed = text.trim();
  return HEIGHT.test(trimmed) ? Number(trimmed) : undefined;
}

/** What a text stands for; undefined where it is none of them. */
export function readIdentifier(text: string): Identifier | undefined {
  const trimmed = text.trim();
  const height = WRITTEN_HEIGHT.test(trimmed)
    ? readHeight(trimmed.replace(/[^0-9]/g, ""))
    : readHeight(trimmed);
  if (height !== undefined) return { kind: "height", height };
  const hash = readHash(trimmed);
  if (hash !== undefined) return { kind: "hash", hash };
  const address = readAddress(trimmed);
  if (address !== undefined) return { kind: "address", address };
  const consensus = readConsensusAddress(trimmed);
  if (consensus !== undefined) return { kind: "validator", consensus };
  const id = PROPOSAL.exec(trimmed)?.[1];
  return id === undefined ? undefined : { kind: "proposal", id };
}

/** The address of a key of consensus as bech32; undefined for anything else. */
export function readConsensusAddress(text: string): Address | undefined {
  return addressIn(() => parseBech32(text.trim(), CONSENSUS_PREFIX));
}

function addressIn(parse: () => Address): Address | undefined {
  try {
    return parse();
  } catch {
    // Whatever else was pasted: told by undefined.
    return undefined;
  }
}
