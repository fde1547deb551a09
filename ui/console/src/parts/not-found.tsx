/** What an address shows that names no page. */
import { NEW } from '../address'
import { Button } from './button'
import { Page } from './page'
import { Empty } from './states'

export const NotFound = () => (
  <Page title="Page not found">
    <Empty icon="search" title="There is nothing at this address">
      <p>The link may be old, or mistyped. Choose a page from the menu, or ask a question.</p>
      <Button label="Ask a question" kind="primary" href={NEW} />
    </Empty>
  </Page>
)
