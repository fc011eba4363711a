/** Links to things of the chain: blocks, transactions, accounts. */
import { type Address, toChecksumAddress, ZERO_ADDRESS } from "../../chain/address.js";
import type { Hash32 } from "../../chain/hex.js";
import { type Content, el } from "../../web/html/element.js";
import { shortHex } from "../../web/html/format.js";
import type { Texts } from "../text/catalogue.js";

/** Link to a block. */
export function blockLink(height: number): Content {
  return el("a", { href: `/block/${height}` }, String(height));
}

/** Link to a transaction. */
export function transactionLink(hash: Hash32, isShort = true): Content {
  const text = isShort ? shortHex(hash) : hash;
  return el("a", { href: `/tx/${hash}` }, el("code", { title: hash }, text));
}

/** Link to an account; the chain's own are named. */
export function addressLink(address: Address, t: Texts, isShort = true): Content {
  const full = toChecksumAddress(address);
  const name = t.accountName(address);
  const text = isShort ? shortHex(full) : full;
  const link = el("a", { href: `/address/${full}` }, el("code", { title: full }, text));
  return name === undefined ? link : [link, " ", el("span", { class: "tag" }, name)];
}

/**
 * Link to the validator that proposed a block, by the address of its key: no account of that name is.
 * Nobody proposed the first block.
 */
export function proposerLink(consensus: Address, isShort = true): Content {
  if (consensus === ZERO_ADDRESS) return "—";
  const full = toChecksumAddress(consensus);
  const text = isShort ? shortHex(full) : full;
  return el("a", { href: `/validator/${full}` }, el("code", { title: full }, text));
}
