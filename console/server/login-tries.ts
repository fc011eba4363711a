/**
 * How often passwords are tried, and how many at once. Strangers are counted by address and by name, and
 * can therefore shut a name: who is in, or is in front of a browser that was, is counted apart from them.
 */
import { clientOf, isLoopback } from "../../runtime/turns/client-address.js";
import type { Clock } from "../../runtime/process/clock.js";
import { createPageTurns, PageRate } from "../../web/server/page-limits.js";
import { isUserName, lookForUser } from "../users/user-files.js";

/** Passwords of strangers that are tried at a time, and beside them as many of others: each takes 32 MiB. */
const CONCURRENT_TRIES = 2;

/** What the limits are made of. */
export interface LoginTriesOptions {
  /** Where the users' files lie. */
  readonly home: string;
  readonly perMinute: number;
  /** Whether a proxy on this machine speaks for everybody: its address is nobody's. */
  readonly isProxied: boolean;
  readonly clock: Clock;
}

/** Who tries to log in. */
export interface LoginTry {
  readonly remoteAddress: string | undefined;
  readonly name: string;
  /** Names the browser, where this user was in with it before. */
  readonly knownBrowser: string | undefined;
}

/** All tries of one console. */
export class LoginTries {
  /** Strangers at names of nobody take no turn from who is known. */
  private readonly turns = {
    strangers: createPageTurns(CONCURRENT_TRIES),
    known: createPageTurns(CONCURRENT_TRIES),
  };
  private readonly addresses: PageRate;
  private readonly users: PageRate;
  /** Apart, so that no number of them makes a user's tries forgotten. */
  private readonly nobodies: PageRate;
  private readonly browsers: PageRate;
  private readonly sessions: PageRate;

  constructor(private readonly options: LoginTriesOptions) {
    const { perMinute, clock } = options;
    const limit = () => new PageRate(perMinute, clock);
    this.addresses = limit();
    this.users = limit();
    this.nobodies = limit();
    this.browsers = limit();
    this.sessions = limit();
  }

  /** Tries a login. @throws RATE_LIMITED, BUSY, and what the work throws */
  async enter<T>(tried: LoginTry, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const { knownBrowser } = tried;
    if (knownBrowser === undefined) {
      this.limitStranger(tried);
      return this.turns.strangers.run(signal, work);
    }
    this.browsers.take(knownBrowser, 1);
    return this.turns.known.run(signal, work);
  }

  /** Tries the password of who is in. @param session names the session @throws as `enter` */
  async change<T>(session: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    this.sessions.take(session, 1);
    return this.turns.known.run(signal, work);
  }

  private limitStranger({ remoteAddress, name }: LoginTry): void {
    const { home, isProxied } = this.options;
    const client = clientOf(remoteAddress);
    if (!isProxied || !isLoopback(client)) this.addresses.take(client, 1);
    // What no user can be called is not remembered: a form has room for 16 KiB of it.
    if (!isUserName(name)) return;
    const names = lookForUser(home, name) === undefined ? this.nobodies : this.users;
    names.take(name, 1);
  }
}
