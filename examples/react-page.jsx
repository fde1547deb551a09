/** The chat widget in React. `key` is React's own, so the page's key is `api-key`. */
import { useState } from 'react'
import { createRoot } from 'react-dom/client'

function Help() {
  const [cited, setCited] = useState(0)
  return (
    <main>
      <parley-chat
        assistant="default"
        api-key="xyz"
        heading="Help"
        onparley-answer={({ detail }) => setCited(detail.citations.length)}
      />
      <output>{cited} citations</output>
    </main>
  )
}
createRoot(document.querySelector('#app')).render(<Help />)
