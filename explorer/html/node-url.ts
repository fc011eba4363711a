/** How commands that pages show name the node. */

/** Hosts that are the machine itself. */
const HERE = /^(localhost|127(\.[0-9]{1,3}){3}|\[::1\])$/;

/**
 * An interface of the node for who reads the pages on the explorer's own machine. `elsewhere` where readers
 * may be on others, or the node is: which one they mean is theirs to say, and another kit may answer at the
 * usual port. Credentials of a URL are not shown.
 */
export function nodeUrl(url: string, publicUrl: string, elsewhere: string): string {
  const { hostname, origin, pathname } = new URL(url);
  return publicUrl === "" && HERE.test(hostname) && pathname === "/" ? origin : elsewhere;
}
