/** Connections to PostgreSQL that can be lost at any moment without ending the process. */
import { EventEmitter } from "node:events";
import { Client, type ClientBase } from "pg";

/**
 * Lets errors of connections pass that nobody listens for, of all that this process makes: who uses
 * one meets its end with the next statement. Pools, TypeORM and BullMQ hand connections over with a
 * moment between their own listeners, make some by themselves, and let go of all listeners before they
 * end one; a session that the server ends just then would end the process.
 */
export function surviveLostConnections(): void {
  Object.defineProperty(Client.prototype, "emit", {
    value: emitHeard,
    configurable: true,
    writable: true,
  });
}

function emitHeard(this: Client, event: string | symbol, ...rest: unknown[]): boolean {
  if (event === "error" && this.listenerCount("error") === 0) return false;
  return EventEmitter.prototype.emit.call(this, event, ...rest);
}

/**
 * Ends a connection that is of no more use: its pool makes another one in its place. What waits on it fails;
 * with a statement under way the driver closes the socket at once.
 */
export function endConnection(connection: ClientBase): void {
  if (connection instanceof Client) void connection.end().catch(() => undefined);
}
