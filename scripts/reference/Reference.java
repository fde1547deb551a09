import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;

/** One OpenSearch node with plugins from the class path: `Reference.java HOME PORT PLUGIN,PLUGIN...`. */
public class Reference {
  static class Embedded extends Node {
    Embedded(Settings settings, List<Class<? extends Plugin>> plugins) {
      super(
          InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "reference"),
          plugins,
          false);
    }
  }

  public static void main(String[] args) throws Exception {
    List<Class<? extends Plugin>> plugins = new ArrayList<>();
    for (String name : args[2].split(",")) plugins.add(Class.forName(name).asSubclass(Plugin.class));
    Settings settings =
        Settings.builder()
            .put("path.home", args[0])
            .put("node.name", "reference")
            .put("cluster.name", "reference")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", args[1])
            .put("transport.port", "0")
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
    new Embedded(settings, plugins).start();
    new CountDownLatch(1).await();
  }
}
