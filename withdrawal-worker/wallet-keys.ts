/** Keys of the home's hot wallets, decrypted once each; they stay in this process. */
import { existsSync } from "node:fs";
import type { Address } from "../chain/address.js";
import { AppError, errorCode } from "../chain/errors.js";
import { decryptKeystore } from "../chain/keystore.js";
import { type HomeWallet, readHomeWallets } from "../ledger/wallets/home-wallets.js";
import { readSecretFile } from "../runtime/config/secret-file.js";
import type { Logger } from "../runtime/process/logger.js";
import { WorkerError } from "./errors.js";
import { createKeySigner, type Signer, type SigningLimits } from "./signer.js";

/** What `WalletKeys` needs. */
export interface WalletKeysOptions {
  readonly home: string;
  readonly limits: SigningLimits;
  readonly log: Logger;
}

/** The signers of the wallets whose keystores lie in the home; one that is added later is found. */
export class WalletKeys {
  readonly #options: WalletKeysOptions;
  readonly #signers = new Map<Address, Signer>();
  /** Keystores that could not be opened: each is complained about once, and tried at the next start. */
  readonly #unusable = new Set<Address>();

  /**
   * Opens the first wallet's keystore, without which a home is not complete, and the others as far
   * as they can be opened.
   * @throws the faults of the first one's files; INVALID_WALLET_FILE
   */
  constructor(options: WalletKeysOptions) {
    this.#options = options;
    const [first, ...further] = readHomeWallets(options.home);
    if (first !== undefined) this.#open(first);
    for (const wallet of further) this.#tryToOpen(wallet);
  }

  /** The signer of a wallet; undefined while no keystore of the home opens it. */
  signerOf(wallet: Address): Signer | undefined {
    return this.#signers.get(wallet);
  }

  /** Opens what has come into the home since; faults of single files leave the others alone. */
  refresh(): void {
    try {
      for (const wallet of readHomeWallets(this.#options.home)) this.#tryToOpen(wallet);
    } catch (error) {
      // A file that is being written, or is none of ours: the next look sees it whole.
      if (!(error instanceof AppError)) throw error;
      this.#options.log.debug({ code: errorCode(error) }, "the home's keystores cannot be listed");
    }
  }

  #tryToOpen(wallet: HomeWallet): void {
    const { address } = wallet;
    if (this.#signers.has(address) || this.#unusable.has(address)) return;
    // Written behind the keystore: until then the file is not complete.
    if (!existsSync(wallet.passphrase)) return;
    try {
      this.#open(wallet);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const fields = { wallet: address, code: errorCode(error) };
      this.#options.log.error(fields, "the keystore of a wallet cannot be opened");
      this.#unusable.add(address);
    }
  }

  #open({ keystore, passphrase }: HomeWallet): void {
    const { privateKey } = decryptKeystore(readSecretFile(keystore), readSecretFile(passphrase));
    const signer = createKeySigner({ ...this.#options.limits, privateKey });
    this.#signers.set(signer.address, signer);
  }
}

/** Stands where no key is: it knows the address and signs nothing. */
export function signerWithoutKey(address: Address): Signer {
  return {
    address,
    sign() {
      throw new WorkerError("NO_KEY", "no keystore of this home opens this wallet");
    },
  };
}
