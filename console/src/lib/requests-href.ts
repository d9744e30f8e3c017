/** The address of the request log with filters. @param filters `open` is the request that is shown */
export const requestsHref = (filters: Readonly<Record<string, string | undefined>>): string =>
  `/requests?${new URLSearchParams(Object.entries(filters).flatMap(([name, value]) => (value ? [[name, value]] : []))).toString()}`;
