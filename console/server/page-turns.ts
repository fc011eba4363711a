/** Whose page or action is made when: so many at once, and no user keeps the others from theirs. */
import { errorCode } from "../../chain/errors.js";
import type { Turns } from "../../runtime/turns/turns.js";
import { createPageTurns } from "../../web/server/page-limits.js";
import type { ConsolePage, ConsoleRequest, PageRoute } from "./route.js";

/** Of all turns, the part that one user has at most. */
const USER_SHARE = 1 / 2;

/** Longest wait for a turn where there is something to be shown without one. */
const SHORT_WAIT_MS = 1_000;

/** The turns of all who are in. */
export class PageTurns {
  private readonly pages: Turns;
  /** Actions have their own: who stops a payment does not wait for pages that no API answers. */
  private readonly actions: Turns;

  /** @param most pages at the same time, and beside them as many actions */
  constructor(most: number) {
    this.pages = createPageTurns(most, USER_SHARE);
    this.actions = createPageTurns(most, USER_SHARE);
  }

  /** Makes a page. @throws BUSY where the route has nothing to show without a turn; what the route throws */
  async show({ show, showBusy }: PageRoute, request: ConsoleRequest): Promise<ConsolePage> {
    const { user, signal } = request;
    const maxWaitMs = showBusy === undefined ? undefined : SHORT_WAIT_MS;
    try {
      return await this.pages.run(signal, () => show(request), user, maxWaitMs);
    } catch (error) {
      if (showBusy === undefined || errorCode(error) !== "BUSY") throw error;
      return showBusy(request);
    }
  }

  /** Carries an action out. @throws BUSY; what it throws */
  act<T>({ user, signal }: ConsoleRequest, action: () => Promise<T>): Promise<T> {
    return this.actions.run(signal, action, user);
  }
}
