/**
 * Codes that a block has run, ready to be run again: a frame pays for reading its code once in a block
 * and not once in each transaction. The codes that ran last stay; the room is a rule of the chain.
 */
import type { Hash32 } from "../../../chain/hex.js";

/** Codes of one block by their hashes, made ready to run. */
export class KeptCodes<Code extends { readonly bytes: Uint8Array }> {
  /** Of transactions before, in the order of their last use. */
  private readonly kept = new Map<Hash32, Code>();
  private keptBytes = 0;
  /** Of the transaction that runs, in the same order. */
  private readonly used = new Map<Hash32, Code>();
  private usedBytes = 0;

  /** @param roomBytes bytes of code; 0 keeps none */
  constructor(private readonly roomBytes: number) {}

  /** The code, where it is kept; this is a use of it. */
  find(codeHash: Hash32): Code | undefined {
    const code = this.used.get(codeHash) ?? this.kept.get(codeHash);
    if (code !== undefined) this.use(codeHash, code);
    return code;
  }

  /** Notes that the transaction runs a code, as far as there is room for all that it runs. */
  use(codeHash: Hash32, code: Code): void {
    if (this.used.delete(codeHash)) this.usedBytes -= code.bytes.length;
    if (this.usedBytes + code.bytes.length > this.roomBytes) return;
    this.used.set(codeHash, code);
    this.usedBytes += code.bytes.length;
  }

  /** Ends the transaction: codes of one that is in the block stay, in place of those not used for longest. */
  finish(isIncluded: boolean): void {
    if (isIncluded) {
      for (const [codeHash, code] of this.used) this.keep(codeHash, code);
      for (const [codeHash, { bytes }] of this.kept) {
        if (this.keptBytes <= this.roomBytes) break;
        this.kept.delete(codeHash);
        this.keptBytes -= bytes.length;
      }
    }
    this.used.clear();
    this.usedBytes = 0;
  }

  private keep(codeHash: Hash32, code: Code): void {
    if (!this.kept.delete(codeHash)) this.keptBytes += code.bytes.length;
    this.kept.set(codeHash, code);
  }
}
