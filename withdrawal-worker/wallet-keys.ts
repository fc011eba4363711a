/** Signers of the home's hot wallets, opened once each behind the signers' own rules. */
import { existsSync } from "node:fs";
import type { Address } from "../chain/address.js";
import type { ChainAccounts } from "../chain/chain-accounts.js";
import { AppError, errorCode } from "../chain/errors.js";
import type { TokenEntry } from "../chain/token-list.js";
import { type HomeWallet, readHomeWallets } from "../ledger/wallets/home-wallets.js";
import { ConfigError } from "../runtime/config/config.js";
import type { Logger } from "../runtime/process/logger.js";
import { WorkerError } from "./errors.js";
import { type OpenedSigner, openSigner, type SignerParts } from "./signers/open-signer.js";
import type { Signer } from "./signers/signer-port.js";

/** What `WalletKeys` needs. */
export interface WalletKeysOptions
  extends Pick<
    SignerParts,
    "home" | "settings" | "chainId" | "limits" | "totals" | "depositAddressAt"
  > {
  /** Served tokens: their contracts are called, and never paid. */
  readonly tokens: readonly Pick<TokenEntry, "symbol" | "contractAddress">[];
  /** Accounts that the chain's genesis names, as far as they are known by now. */
  readonly chainAccounts?: () => ChainAccounts;
  readonly log: Logger;
}

/** The signers of the wallets whose keystores lie in the home; one that is added later is found. */
export class WalletKeys {
  readonly #options: WalletKeysOptions;
  readonly #contracts: ReadonlyMap<string, Address>;
  readonly #opened = new Map<Address, OpenedSigner>();
  /** Why wallets cannot be signed for, in words, of those that could not be opened: each is told once. */
  readonly #faults = new Map<Address, string>();
  /** Those of them whose content is wrong: they are tried at the next start. */
  readonly #wrong = new Set<Address>();
  /** Every wallet that the home names, also one that cannot be opened: none is ever paid. */
  #wallets: readonly Address[] = [];

  /**
   * Opens all keystores, as far as they can be opened: of the others `faultOf` tells.
   * @throws ConfigError of the signer's settings; INVALID_WALLET_FILE
   */
  constructor(options: WalletKeysOptions) {
    this.#options = options;
    this.#contracts = new Map(
      options.tokens.map(({ symbol, contractAddress }) => [symbol, contractAddress]),
    );
    for (const wallet of this.#readHome()) this.#tryToOpen(wallet);
  }

  /** The signer of a wallet; undefined while no keystore of the home opens it. */
  signerOf(wallet: Address): Signer | undefined {
    return this.#opened.get(wallet)?.signer;
  }

  /**
   * Which of a wallet's files keeps it from being signed for, and what to do; undefined where it is opened,
   * or the home has no keystore of it.
   */
  faultOf(wallet: Address): string | undefined {
    return this.#opened.has(wallet) ? undefined : this.#faults.get(wallet);
  }

  /** Opens what has come into the home since; faults of single files leave the others alone. */
  refresh(): void {
    try {
      for (const wallet of this.#readHome()) this.#tryToOpen(wallet);
    } catch (error) {
      // A file that is being written, or is none of ours: the next look sees it whole.
      if (!(error instanceof AppError)) throw error;
      this.#options.log.debug({ code: errorCode(error) }, "the home's keystores cannot be listed");
    }
  }

  /** Ends connections and processes of those who hold the keys. */
  async close(): Promise<void> {
    await Promise.all([...this.#opened.values()].map(({ close }) => close()));
  }

  #readHome(): readonly HomeWallet[] {
    const wallets = readHomeWallets(this.#options.home);
    this.#wallets = wallets.map(({ address }) => address);
    return wallets;
  }

  #tryToOpen(wallet: HomeWallet): void {
    const { address } = wallet;
    if (this.#opened.has(address) || this.#wrong.has(address)) return;
    // Written behind the keystore: until then the file is not complete.
    const isKeystore = this.#options.settings.kind === "keystore";
    if (isKeystore && !existsSync(wallet.passphrase)) {
      this.#faults.set(address, `its passphrase is missing: put it into ${wallet.passphrase}`);
      return;
    }
    try {
      this.#open(wallet);
    } catch (error) {
      if (!(error instanceof AppError) || error instanceof ConfigError) throw error;
      this.#note(wallet, error);
    }
  }

  #note({ address, keystore }: HomeWallet, error: AppError): void {
    const code = errorCode(error);
    // A disk that does not answer for a moment: the next look reads them.
    const isWrong = code !== "SECRET_FILE_UNREADABLE";
    const remedy = isWrong
      ? "put the right one there, and start the worker anew"
      : "make it readable";
    const reason = `${error.message}: ${remedy}`;
    if (isWrong) this.#wrong.add(address);
    if (this.#faults.get(address) === reason) return;
    this.#faults.set(address, reason);
    const fields = { wallet: address, keystore, code, reason };
    this.#options.log.error(fields, "the keystore of a wallet cannot be opened");
  }

  #open(wallet: HomeWallet): void {
    const { home, settings, chainId, limits, totals, depositAddressAt } = this.#options;
    const { chainAccounts } = this.#options;
    const contracts = this.#contracts;
    const wallets = () => this.#wallets;
    const own = {
      get wallets() {
        return wallets();
      },
      tokenContracts: [...contracts.values()],
      get chainAccounts() {
        return Object.values(chainAccounts?.() ?? {});
      },
    };
    const contractOf = (asset: string) => contracts.get(asset);
    const rules = { chainId, limits, totals, own, contractOf, depositAddressAt };
    const opened = openSigner({ home, settings, wallet, ...rules });
    this.#opened.set(opened.signer.address, opened);
  }
}

/** Why nothing is signed where the home has no keystore of a wallet. */
const NO_KEYSTORE = "no keystore of this home opens this wallet";

/**
 * Stands where no key is: it knows the address and signs nothing.
 * @param fault why the keystore that the home has of it does not open, if it has one
 */
export function signerWithoutKey(address: Address, fault?: string): Signer {
  const reason = fault === undefined ? NO_KEYSTORE : `${NO_KEYSTORE}: ${fault}`;
  return {
    address,
    sign: () => Promise.reject(new WorkerError("NO_KEY", reason)),
    review: (payments) => payments.map(() => undefined),
    trouble: () => reason,
  };
}
